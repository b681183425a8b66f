"""What kind of test each one is: `unit` (starts no process), `process`, and what has a mark already.

A test is `process` when it is given the built file, when its own code or a helper that it reaches names one of the
ways to start a process, or when a mark says so. All others are `unit`, and fail when they start one. Fuzzing is `slow`.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import types

import pytest

# As the interpreter announces them to audit hooks.
STARTS = {"subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.system", "os.exec", "pty.spawn"}
# Names in code that means to start a process.
_NAMES = {"subprocess", "Popen", "fork", "forkpty", "posix_spawn", "multiprocessing", "spawn_detached", "Tmux"}
_OURS = ("support", "tests", "test_", "conftest")

_watching: list[list[str]] = []


def _listen(event: str, arguments: tuple) -> None:
    if event in STARTS and _watching:
        _watching[-1].append(f"{event} {arguments[0]!r}"[:200])


sys.addaudithook(_listen)


def mark(item: pytest.Item) -> None:
    """Add the marks that can be told."""
    if "fuzz" in item.path.parts:
        item.add_marker("slow")
    given = "ctl" in getattr(item, "fixturenames", ())
    if given:
        item.add_marker("blackbox")
    if item.get_closest_marker("process") is None:
        item.add_marker("process" if given or _starts_processes(item) else "unit")


@contextlib.contextmanager
def watched(item: pytest.Item):
    """Note what a unit test starts, for judge()."""
    if item.get_closest_marker("unit") is None:
        yield
        return
    _watching.append([])
    try:
        yield
    finally:
        _watching.pop()


def judge(item: pytest.Item, call: pytest.CallInfo, report: pytest.TestReport) -> None:
    """Let a unit test fail that has started a process."""
    if call.when == "call" and report.passed and item.get_closest_marker("unit") and _watching and _watching[-1]:
        report.outcome = "failed"
        report.longrepr = f"a unit test started a process (mark it with @pytest.mark.process): {_watching[-1][0]}"


def _starts_processes(item: pytest.Item) -> bool:
    functions = [getattr(item, "function", None)]
    for definitions in getattr(item, "_fixtureinfo", None).name2fixturedefs.values():
        functions += [definition.func for definition in definitions if definition.func.__module__ in sys.modules]
    return any(_reaches(function) for function in functions if function is not None)


def _reaches(function) -> bool:
    """Whether the code of a function, or of what it names in the tests' own modules, names a way to start a process."""
    seen: set[int] = set()
    todo = [(_code_of(function), getattr(function, "__globals__", {}))]
    while todo:
        code, names = todo.pop()
        if code is None or id(code) in seen:
            continue
        seen.add(id(code))
        if _NAMES.intersection(code.co_names):
            return True
        todo += [(constant, names) for constant in code.co_consts if isinstance(constant, types.CodeType)]
        for name in code.co_names:
            todo += _named(names.get(name))
    return False


def _named(value) -> list[tuple]:
    """What a global name of a test stands for, as code to look at."""
    if isinstance(value, functools.partial):
        value = value.func
    if isinstance(value, type) and value.__module__.startswith(_OURS):
        members = [getattr(member, "__wrapped__", member) for member in vars(value).values()]
        return [(_code_of(member), getattr(member, "__globals__", {})) for member in members if callable(member)]
    if getattr(value, "__module__", None) and str(value.__module__).startswith(_OURS):
        value = getattr(value, "__wrapped__", value)
        return [(_code_of(value), getattr(value, "__globals__", {}))]
    return []


def _code_of(function) -> types.CodeType | None:
    return getattr(getattr(function, "__wrapped__", function), "__code__", None)
