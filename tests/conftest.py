"""Fixtures that every suite shares, and what holds for each run of the tests."""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings
from support import built_file, chosen, kinds, session
from support.running_host import RunningHost

# Generated examples: `make test` tries the same ones every time, `make check` fewer of them, `make fuzz` far more
# and at random. Starting a process or a server for an example takes longer than hypothesis finds healthy.
_SLOW = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile("short", max_examples=60, derandomize=True, deadline=None, suppress_health_check=_SLOW)
settings.register_profile("brief", parent=settings.get_profile("short"), max_examples=10)
settings.register_profile("long", max_examples=3000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("FUZZ_PROFILE", "short"))

RUN = pytest.StashKey[session.Session]()
LEFT = pytest.StashKey[list]()
# The tests mostly wait: for a terminal, for a process, for a deadline.
WORKERS_PER_CPU = 4


def pytest_xdist_auto_num_workers() -> int:
    """How many workers `-n auto` means."""
    return WORKERS_PER_CPU * len(os.sched_getaffinity(0))


# First: before pytest makes its own folder, and xdist its workers.
@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    session.be_plain()
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None:
        config.stash[RUN] = session.Session.start()
    # `make compat` runs the suites once for each Python and each tmux.
    chosen.put_first_on_path()
    if worker is not None or not config.option.basetemp:
        config.option.basetemp = session.basetemp(worker)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session, exitstatus):
    """Fail the run that leaves something behind; keep the tests' folders only where a test failed.

    CTL_TESTS_ALONE=1 says that nobody else runs tests on this machine: what is new in /tmp is ours, too.
    """
    run = session.config.stash.get(RUN, None)
    if run is None:
        return
    surely, perhaps = run.finish()
    session.config.stash[LEFT] = surely + perhaps
    if surely or (perhaps and os.environ.get("CTL_TESTS_ALONE")):
        session.exitstatus = exitstatus or pytest.ExitCode.TESTS_FAILED
    if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        run.remove()


def pytest_terminal_summary(terminalreporter, config):
    for path in config.stash.get(LEFT, []):
        terminalreporter.write_line(f"left behind, by this run or another: {path}", red=True)
    run = config.stash.get(RUN, None)
    if run is not None and run.root.exists():
        terminalreporter.write_line(f"The tests' folders are kept for a day in {run.root}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """`-m blackbox` picks the tests that are given the built file, `-m unit` those that start no process."""
    for item in items:
        kinds.mark(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item):
    with kinds.watched(item):
        yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    kinds.judge(item, call, outcome.get_result())


@pytest.fixture(scope="session")
def ctl(tmp_path_factory) -> str:
    """The path of a copy of the built file, which is never older than what it is built from.

    A copy, so that a build that goes on meanwhile does not change it under the tests. CTL_FILE names
    another file to test, and CTL_SHA256 the bytes that it has to be.
    """
    return str(built_file.copy_into(tmp_path_factory.mktemp("built")))


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
