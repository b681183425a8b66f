"""A run of a coding agent through us against the bare CLI: time added, memory, and how fast all of it is gone.

Both sides run in turn on the same machine, so the ratios mean something.
"""

from __future__ import annotations

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from support.fake_provider import FakeProvider
from support.figures import Row, compared
from support.real_agents import FLAGS, RealBox
from support.scripted_agent import Box, structured
from support.waiting import until

BASE = {"PATH": os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ.get("PATH", os.defpath)])}
WORK = {"turns": [{"calls": [{"do": "run", "command": "echo hi"}]}, {"text": "Done."}]}
SLOW = "python3 -c 'import time; time.sleep(600)' & setsid python3 -c 'import time; time.sleep(600)'; echo never"
OUTPUT_MB, SHORT_OUTPUT_MB = 100, 30
LINE_MB = 20


def flood(printed_mb: int) -> str:
    """A script of so much output: ordinary events, and one line of 20 MB."""
    return f"""\
begin()
for number in range({(printed_mb - LINE_MB) * 5}):
    item("command_execution", id=str(number), command="cat", aggregated_output="x" * 200_000, exit_code=0)
message("y" * {LINE_MB}_000_000)
end("Done.")
"""


def rows(program: str, runs: int, *, short: bool = False) -> list[Row]:
    """Time added to a run, memory, and how long the end of a run takes."""
    found = _real(program, runs)
    with tempfile.TemporaryDirectory() as folder:
        found.append(_memory(Box(program, Path(folder), BASE), SHORT_OUTPUT_MB if short else OUTPUT_MB))
    with tempfile.TemporaryDirectory() as folder:
        found.append(_ending(Box(program, Path(folder), BASE), runs))
    return found


def _real(program: str, runs: int) -> list[Row]:
    names = (
        "a codex run through mcp agent",
        "a codex run through agent run",
        "codex in a command: SIGTERM to nothing left",
    )
    keys = ("run mcp/bare", "run shell/bare", "run end")
    with tempfile.TemporaryDirectory() as folder, FakeProvider(WORK) as provider:
        try:
            box = RealBox(program, Path(folder), BASE, "codex", provider.url)
        except pytest.skip.Exception as reason:
            return [Row(key, name, None, None, "", "ms", str(reason)) for key, name in zip(keys, names)]
        ours, shell, bare = _time_codex(box, runs)
    ended = []
    for _ in range(max(1, runs // 3)):
        with tempfile.TemporaryDirectory() as folder, FakeProvider(_hang()) as provider:
            ended.append(_time_end(RealBox(program, Path(folder), BASE, "codex", provider.url)))
    beside = {"the bare CLI": ("bare", bare)}
    return [
        *compared("run mcp", names[0], ours, beside, "ms", 1000),
        *compared("run shell", names[1], shell, beside, "ms", 1000),
        Row("run end", names[2], statistics.median(ended) * 1000, None, "", "ms"),
    ]


def _hang() -> dict:
    return {"turns": [{"calls": [{"do": "run", "command": SLOW}]}]}


def _time_codex(box: RealBox, runs: int) -> tuple[list[float], list[float], list[float]]:
    flags = FLAGS["codex"]
    options = [word for word in flags if word != "--"]
    bare_argv = [box.bin / "codex", "exec", "--json", "--skip-git-repo-check", "-C", box.project, *options, "-"]
    shell_argv = [box.ctl, "agent", "run", "codex", "go", "--cwd", box.project, *flags]
    ours, shell, bare = [], [], []
    with box.real() as server:
        server.initialize()
        for number in range(-1, runs):
            times = []
            for work in (
                lambda: structured(server.answer_to(server.call("run", prompt="go")))["status"] == "completed",
                lambda: _quiet(shell_argv, box.env, b""),
                lambda: _quiet(bare_argv, box.env, b"go"),
            ):
                begun = time.perf_counter()
                assert work()
                times.append(time.perf_counter() - begun)
            if number >= 0:
                for kept, seconds in zip((ours, shell, bare), times):
                    kept.append(seconds)
    return ours, shell, bare


def _quiet(argv: list, env: dict, stdin: bytes) -> bool:
    words = [str(word) for word in argv]
    return subprocess.run(words, env=env, input=stdin, capture_output=True, check=False).returncode == 0


def _time_end(box: Box) -> float:
    with box.real() if isinstance(box, RealBox) else box.server() as server:
        if isinstance(box, RealBox):
            server.initialize()
        server.call("run", prompt="go")
        until(lambda: len(box.family()) >= 5, "the agent's command", 60)
        begun = time.perf_counter()
        server.signal(signal.SIGTERM)
        until(lambda: not box.processes(), "the end of everything")
        return time.perf_counter() - begun


def _memory(box: Box, printed_mb: int) -> Row:
    box.script("begin()\nend('Done.')\n")
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="go")))["status"] == "completed"
        small = _peak_mib(server.process.pid)
    box.script(flood(printed_mb))
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="go")))["answer"] == "Done."
        large = _peak_mib(server.process.pid)
    what = f"memory of mcp agent while its agent prints {printed_mb} MB"
    return Row("flood/small", what, large, small, "a small run", "MiB")


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def _ending(box: Box, runs: int) -> Row:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    escaped = f"background({code!r}, start_new_session=True)\n"
    ignoring = "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
    box.script(f"begin()\n{escaped * 3}{ignoring}time.sleep(600)\n")
    times = [_time_end(box) for _ in range(max(1, runs // 3))]
    what = "a CLI and commands that ignore signals: SIGTERM to nothing left"
    return Row("stubborn end", what, statistics.median(times) * 1000, None, "", "ms")
