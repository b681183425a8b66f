"""Fixtures that every suite shares."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from support import chosen
from support.running_host import RunningHost

ROOT = Path(__file__).resolve().parent.parent

# Fuzzing: `make test` runs a short form that is the same every time, `make fuzz` searches far longer, and at
# random. Starting a process or a server for an example takes longer than hypothesis finds healthy.
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("short", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("long", max_examples=3000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("FUZZ_PROFILE", "short"))

# `make compat` runs the suites once for each Python and each tmux.
chosen.put_first_on_path()


@pytest.fixture(scope="session")
def ctl(tmp_path_factory) -> str:
    """The path of a copy of the built file, which `make test` makes first.

    A copy, so that a build that goes on meanwhile does not change it under the tests. CTL_FILE names
    another file to test, and CTL_SHA256 the bytes that it has to be.
    """
    path = Path(os.environ.get("CTL_FILE", ROOT / "dist" / "termsprawlctl"))
    if not path.is_file():
        pytest.fail(f"{path} is missing: run `make build` first (`make test` does)", pytrace=False)
    copy = shutil.copy2(path, tmp_path_factory.mktemp("built") / "termsprawlctl")
    expected = os.environ.get("CTL_SHA256")
    if expected and hashlib.sha256(copy.read_bytes()).hexdigest() != expected:
        pytest.fail(f"{path} is not the file with the SHA-256 {expected}", pytrace=False)
    return str(copy)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """`-m blackbox` picks the tests that are given the built file."""
    for item in items:
        if "ctl" in getattr(item, "fixturenames", ()):
            item.add_marker("blackbox")


@pytest.fixture
def hermetic_env() -> dict[str, str]:
    """An environment with nothing in it but PATH; a test adds what it is about.

    python3 is the one that runs the tests, its own binary and not a version manager's shim,
    unless another one is chosen (support/chosen.py).
    """
    return {"PATH": chosen.plain_path()}


@pytest.fixture
def host(ctl, tmp_path_factory, hermetic_env):
    """A running embedded host in an empty environment; its terminals end with the test."""
    # Short: a socket's path has to fit into some 100 bytes.
    root = tmp_path_factory.mktemp("h")
    running = RunningHost(ctl, root, {**hermetic_env, "HOME": str(root), "SHELL": "/bin/bash"})
    running.start()
    yield running
    running.stop("--kill-sessions")
