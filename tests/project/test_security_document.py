"""SECURITY.md says what is so: every test that it names exists, and every figure is the code's."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
CAPS = re.findall(r"^\| .* \| ([0-9,]+)(?: \w+)? \| `(termsprawlctl[\w.]+)` \|$", TEXT, re.MULTILINE)
TESTS = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TEXT)


def functions(path: Path) -> set[str]:
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def value_of(name: str) -> object:
    """A constant of a module, or of a class in one."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        module, _, owner = module.rpartition(".")
        return getattr(getattr(importlib.import_module(module), owner), attribute)


def section(title: str) -> str:
    return TEXT.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def test_every_test_that_is_named_exists():
    assert len(TESTS) > 50
    missing = [f"{path}::{name}" for path, name in TESTS if name not in functions(ROOT / path)]
    assert missing == []


def test_every_defence_has_a_test_and_every_cap_a_constant():
    attacks = [line for line in section("Attacks and defences").splitlines() if line.startswith("| ")]
    assert len(attacks) - 1 == len(TESTS)
    caps = [line for line in section("Caps").splitlines() if line.startswith("| ")]
    assert len(caps) - 1 == len(CAPS)


@pytest.mark.parametrize(("figure", "name"), CAPS)
def test_a_figure_is_what_the_code_says(figure, name):
    assert value_of(name) == int(figure.replace(",", ""))


def test_the_command_prints_a_figure():
    (command,) = re.findall(r"```sh\n(.*)\n```", section("Caps"))
    words = shlex.split(command)
    assert words[0] == "python3"
    done = subprocess.run(
        [sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == f"{value_of(words[-1])}\n"


def test_every_file_that_is_named_exists():
    for path in re.findall(r"`((?:tests|termsprawlctl|docs)/[\w/.]+\.\w+)(?:::\w+)?`", TEXT):
        assert (ROOT / path).is_file(), path


def test_the_readme_leads_to_it():
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
