"""A run of a coding agent through us against the bare CLI: time added, memory, and how fast all of it is gone.

rows() gives table rows; both sides run in turn on the same machine, so the ratios mean something.
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
from support.real_agents import FLAGS, RealBox
from support.scripted_agent import Box, structured, until

ROOT = Path(__file__).resolve().parent.parent
BASE = {"PATH": os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ.get("PATH", os.defpath)])}
WORK = {"turns": [{"calls": [{"do": "run", "command": "echo hi"}]}, {"text": "Done."}]}
SLOW = "python3 -c 'import time; time.sleep(600)' & setsid python3 -c 'import time; time.sleep(600)'; echo never"
OUTPUT_MB = 100
# Ordinary events, one line of 20 MB, and output in the middle of an event: 100 MB in all.
FLOOD = f"""\
begin()
for number in range(400):
    item("command_execution", id=str(number), command="cat", aggregated_output="x" * 200_000, exit_code=0)
message("y" * 20_000_000)
end("Done.")
assert {OUTPUT_MB} == 400 * 200_000 // 1_000_000 + 20
"""


def rows(program: str | None = None, runs: int = 7) -> list[tuple[str, str, str, str]]:
    """(what, ours, the bare CLI's, ratio) as text."""
    program = program or str(ROOT / "dist" / "termsprawlctl")
    found = [*_real(program, runs)]
    with tempfile.TemporaryDirectory() as folder:
        found.append(_memory(Box(program, Path(folder), BASE)))
    with tempfile.TemporaryDirectory() as folder:
        found.append(_ending(Box(program, Path(folder), BASE), runs))
    return found


def _real(program: str, runs: int) -> list[tuple[str, str, str, str]]:
    names = ("codex, one run: mcp agent", "codex, one run: agent run", "codex in a command: SIGTERM to nothing left")
    with tempfile.TemporaryDirectory() as folder, FakeProvider(WORK) as provider:
        try:
            box = RealBox(program, Path(folder), BASE, "codex", provider.url)
        except pytest.skip.Exception as reason:
            return [(name, "-", str(reason), "-") for name in names]
        ours, shell, bare = _time_codex(box, runs)
    ended = []
    for _ in range(max(1, runs // 2)):
        with tempfile.TemporaryDirectory() as folder, FakeProvider(_hang()) as provider:
            ended.append(_time_end(RealBox(program, Path(folder), BASE, "codex", provider.url)))
    return [
        _row(names[0], ours, bare),
        _row(names[1], shell, bare),
        (names[2], f"{statistics.median(ended) * 1000:.0f} ms", "-", "-"),
    ]


def _hang() -> dict:
    return {"turns": [{"calls": [{"do": "run", "command": SLOW}]}]}


def _row(name: str, ours: list[float], bare: list[float]) -> tuple[str, str, str, str]:
    one, other = statistics.median(ours), statistics.median(bare)
    return (name, f"{one * 1000:.0f} ms", f"{other * 1000:.0f} ms", f"{one / other:.3f}")


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


def _memory(box: Box) -> tuple[str, str, str, str]:
    box.script("begin()\nend('Done.')\n")
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="go")))["status"] == "completed"
        small = _peak_mib(server.process.pid)
    box.script(FLOOD)
    with box.server() as server:
        assert structured(server.answer_to(server.call("run", prompt="go")))["answer"] == "Done."
        large = _peak_mib(server.process.pid)
    ratio = f"{large / small:.2f}"
    return (
        f"memory of the server, {OUTPUT_MB} MB of output (beside: a small run)",
        f"{large:.1f} MiB",
        f"{small:.1f} MiB",
        ratio,
    )


def _peak_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise AssertionError("no VmHWM")


def _ending(box: Box, runs: int) -> tuple[str, str, str, str]:
    code = "import signal, time; signal.signal(15, signal.SIG_IGN); time.sleep(600)"
    escaped = f"background({code!r}, start_new_session=True)\n"
    ignoring = "for number in (1, 2, 15): signal.signal(number, signal.SIG_IGN)\n"
    box.script(f"begin()\n{escaped * 3}{ignoring}time.sleep(600)\n")
    times = [_time_end(box) for _ in range(max(1, runs // 3))]
    return (
        "a CLI and commands that ignore signals: SIGTERM to nothing left",
        f"{statistics.median(times) * 1000:.0f} ms",
        "-",
        "-",
    )


if __name__ == "__main__":
    for row in rows(*sys.argv[1:2]):
        print(" | ".join(row))
