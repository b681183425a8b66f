"""`self check`: the checksum of a release against the file that runs."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest
from support.command import run

OTHER = "0" * 64


@pytest.fixture
def digest(ctl) -> str:
    return hashlib.sha256(Path(ctl).read_bytes()).hexdigest()


@pytest.mark.parametrize(
    "form", ["{0}\n", "{0}  termsprawlctl\n", "{0} *dist/termsprawlctl", "{1}  other\n{0}  termsprawlctl\n"]
)
def test_the_checksum_of_the_file_matches(ctl, hermetic_env, tmp_path, digest, form):
    path = tmp_path / "sums"
    path.write_text(form.format(digest, OTHER))
    done = run([ctl, "self", "check", str(path)], hermetic_env)
    assert (done.status, done.out.decode(), done.err) == (0, f"{ctl}: OK\n", b"")


def test_another_checksum_does_not(ctl, hermetic_env, tmp_path, digest):
    path = tmp_path / "sums"
    path.write_text(f"{OTHER}  termsprawlctl\n")
    done = run([ctl, "self", "check", str(path)], hermetic_env)
    assert (done.status, done.out) == (1, b"")
    assert digest in done.err.decode()


@pytest.mark.parametrize("text", ["", "no checksum\n", f"{OTHER}  other\n", f"{OTHER}\n{'1' * 64}\n", None])
def test_a_file_without_one_for_it_proves_nothing(ctl, hermetic_env, tmp_path, text):
    path = tmp_path / "sums"
    if text is not None:
        path.write_text(text)
    done = run([ctl, "self", "check", str(path)], hermetic_env)
    assert (done.status, done.out) == (2, b"")
    assert "sha256sum" in done.err.decode()


@pytest.mark.parametrize("words", [["--version", "--verbose"], ["-V", "--verbose"], ["version", "--verbose"]])
def test_the_version_tells_what_the_file_carries(ctl, hermetic_env, digest, words):
    done = run([ctl, *words], hermetic_env)
    assert (done.status, done.err) == (0, b"")
    first, *lines = done.out.decode().splitlines()
    assert first.startswith("termsprawlctl ")
    told = dict(line.split(None, 1) for line in lines)
    assert f"{sys.version_info[0]}.{sys.version_info[1]}" in told["bytecode"].split()
    assert told["file"] == f"{ctl}, {Path(ctl).stat().st_size} bytes"
    assert told["sha256"] == digest
