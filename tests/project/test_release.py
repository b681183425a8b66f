"""A release: made of one commit, the same bytes wherever it is built, and tested as those bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from support.command import run

ROOT = Path(__file__).resolve().parents[2]
PARTS = ["build.py", "termsprawlctl", "tools", "pyproject.toml", "CHANGELOG.md", ".gitignore"]
AUTHOR = ["-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
# What stands in for the black-box tests, which take minutes: it sees the file that is released, as they do.
TEST = """
import hashlib, os, pathlib
def test_the_file_that_is_released():
    data = pathlib.Path(os.environ["CTL_FILE"]).read_bytes()
    assert hashlib.sha256(data).hexdigest() == os.environ["CTL_SHA256"]
"""


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def checkout(tmp_path):
    """A repository of what a release needs, with one commit."""
    root = tmp_path / "checkout"
    root.mkdir()
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / part, root / part)
    (root / "tests").mkdir()
    (root / "tests" / "test_bytes.py").write_text(TEST)
    write_changelog(root, "1.2.3", "2026-01-31")
    (root / "termsprawlctl" / "__init__.py").write_text('"""The package."""\n\n__version__ = "1.2.3"\n')
    subprocess.run(["git", "init", "-q", root], check=True)
    commit(root)
    return root


def write_changelog(root: Path, version: str, day: str) -> None:
    (root / "CHANGELOG.md").write_text(f"# Changelog\n\n## {version} - {day}\n\n- First.\n\n## 1.2.2 - 2025-12-31\n")


def commit(root: Path) -> None:
    subprocess.run(["git", "-C", root, "add", "-A"], check=True)
    subprocess.run(["git", "-C", root, *AUTHOR, "commit", "-q", "-m", "A state"], check=True)


def released(root: Path):
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "tools/release.py", "--partial", "--", "-q", "tests/test_bytes.py"]
    return subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)


def test_a_release_is_the_tested_file_and_its_checksum(checkout, hermetic_env):
    done = released(checkout)
    assert done.returncode == 0, done.stdout + done.stderr
    dist = checkout / "dist"
    checked = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=dist, capture_output=True, text=True, check=False)
    assert (checked.returncode, checked.stdout) == (0, "termsprawlctl: OK\n")
    assert run([dist / "termsprawlctl", "--version"], hermetic_env).out == b"termsprawlctl 1.2.3\n"


def test_without_the_tests_there_is_a_file_but_no_checksum(checkout):
    (checkout / "dist").mkdir()
    (checkout / "dist" / "SHA256SUMS").write_text("of an earlier release\n")
    (checkout / "tests" / "test_bytes.py").write_text("def test_it():\n    raise AssertionError\n")
    commit(checkout)
    done = released(checkout)
    assert done.returncode == 1
    assert "no release: the black-box tests fail" in done.stderr
    assert not (checkout / "dist" / "SHA256SUMS").exists()


@pytest.mark.parametrize("change", ["termsprawlctl/cli.py", "termsprawlctl/new.py", "README.md"])
def test_what_is_not_committed_is_not_released(checkout, change):
    with (checkout / change).open("a") as stream:
        stream.write("\n# changed\n")
    done = released(checkout)
    assert (done.returncode, done.stderr) == (1, f"no release: commit first, a release is made of a commit: {change}\n")


@pytest.mark.parametrize(
    ("version", "day"), [("1.2.4", "2026-01-31"), ("Unreleased", ""), ("1.2.3", "soon"), ("1.2.3", "")]
)
def test_a_changelog_that_does_not_begin_with_this_version_stops_it(checkout, version, day):
    write_changelog(checkout, version, day)
    commit(checkout)
    done = released(checkout)
    assert done.returncode == 1
    assert "not with '## 1.2.3 - YYYY-MM-DD'" in done.stderr


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ("import time; ENTRY_TIME = time.localtime()[:6]", "what surrounds"),
        ("LAUNCHER = f'# {ROOT}\\n' + LAUNCHER", ""),  # in the launcher, and where its length says where to read on
        ("MAIN = f'# {hash(PACKAGE)}\\n' + MAIN", "__main__.py"),
    ],
    ids=["time of the build", "place of the build", "hash seed"],
)
def test_a_build_that_shows_where_or_when_it_was_made_is_not_released(checkout, line, where):
    text = (checkout / "build.py").read_text()
    assert "\n\ndef entries()" in text
    (checkout / "build.py").write_text(text.replace("\n\ndef entries()", f"\n{line}\n\n\ndef entries()"))
    commit(checkout)
    done = released(checkout)
    assert done.returncode == 1, done.stdout
    assert f"two builds of the same commit differ in {where}" in done.stderr
    assert not (checkout / "dist" / "SHA256SUMS").exists()


def archive(**entries: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as written:
        for name, text in entries.items():
            written.writestr(zipfile.ZipInfo(name), text)
    return stream.getvalue()


def test_a_difference_is_named(release):
    one = archive(a="1", b="2")
    assert release.first_difference(one, archive(a="1", b="2")) == ""
    assert release.first_difference(one, archive(a="1", b="3")) == "b"
    assert release.first_difference(one, archive(a="1", c="2")) == "their names: b, c"
    assert release.first_difference(one, archive(b="2", a="1")) == "their names: another order"
    assert release.first_difference(one, b"#!/bin/sh\n" + one) == "what surrounds the archive's entries"


def test_this_checkout_states_a_version_that_its_changelog_knows(release):
    version = release.stated_version((ROOT / "termsprawlctl" / "__init__.py").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text()
    assert f"\n## {version} - " in changelog or changelog.split("\n## ")[1].startswith("Unreleased")


def test_a_file_of_other_bytes_is_not_tested_as_the_release(tmp_path):
    other = tmp_path / "termsprawlctl"
    other.write_bytes(b"other")
    # A run of its own: as a worker of this one it would begin by emptying this worker's folder.
    apart = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST_")}
    environment = {**apart, "CTL_FILE": str(other), "CTL_SHA256": hashlib.sha256(b"this").hexdigest()}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-m", "blackbox", "tests/project/test_single_file.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "is not the file with the SHA-256" in done.stdout
