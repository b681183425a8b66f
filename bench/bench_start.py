"""How long one command takes from its start to its end, against a bare Python and other ways to package or write it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from support.figures import PYTHON, Row, compared
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles

ROOT = Path(__file__).resolve().parent.parent
# What an app answers to session_info.
SESSION_INFO = {
    "ok": True,
    "value": {
        "nodeId": "agent-1",
        "projectId": "p-1",
        "instanceId": "7b0c1c7e-0000-4000-8000-000000000001",
        "host": "local",
        "status": {"state": "connected", "adapter": "codex-mcp", "version": "1.2.3", "reason": ""},
        "appVersion": "1.0.0",
        "preferencesFile": "/home/ada/.config/app/agent-tools/preferences.json",
        "guidesDirectory": "/home/ada/.config/app/agent-tools/guides",
        "browserEnabled": True,
        "operations": [f"operation_{number}" for number in range(33)],
    },
}
WARM_UP = 2
# Starts a program and says what it took: wall seconds, CPU seconds, peak KiB. A process of its own, and
# a bare Python, because a child's peak begins with the memory of what it was forked from.
RUNNER = r"""
import json, os, resource, sys, time
null = os.open(os.devnull, os.O_RDWR)
for line in sys.stdin:
    job = json.loads(line)
    os.chdir(job["cwd"])
    source = os.open(job["stdin"], os.O_RDONLY)
    wiring = [(os.POSIX_SPAWN_DUP2, number, at) for at, number in enumerate((source, null, null))]
    start = time.perf_counter()
    pid = os.posix_spawn(job["argv"][0], job["argv"], job["env"], file_actions=wiring)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    os.close(source)
    peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    print(json.dumps([os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime, peak]), flush=True)
"""


class Subject:
    """One program to measure: argv with an absolute path, its environment, folder and input."""

    def __init__(
        self, key: str, name: str, argv: list, env: dict, cwd: Path, *, stdin: str | Path = os.devnull
    ) -> None:
        self.key = key
        self.name = name
        self.job = {"argv": [str(word) for word in argv], "env": env, "cwd": str(cwd), "stdin": str(stdin)}
        self.rounds: list[tuple[float, float, int]] = []

    def column(self, number: int) -> list[float]:
        """0: wall seconds, 1: CPU seconds, 2: peak KiB."""
        return [values[number] for values in self.rounds]


def measure(subjects: list[Subject], runs: int) -> None:
    """Run all subjects in turn; each round begins with another one."""
    runner = subprocess.Popen(
        [PYTHON, "-ISB", "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    with runner:
        for number in range(-WARM_UP, runs):
            turn = number % len(subjects)
            for subject in subjects[turn:] + subjects[:turn]:
                runner.stdin.write(json.dumps(subject.job) + "\n")
                status, wall_s, cpu_s, peak_kib = json.loads(runner.stdout.readline())
                if status != 0:
                    sys.exit(f"{subject.name} ended with status {status}: {shlex.join(subject.job['argv'])}")
                if number >= 0:
                    subject.rounds.append((wall_s, cpu_s, peak_kib))


def stock_shiv(folder: Path) -> Path | None:
    """The same package as the shiv command line makes it, or None without shiv."""
    shiv = Path(sys.executable).parent / "shiv"
    if not shiv.exists():
        return None
    site = folder / "site"
    shutil.copytree(ROOT / "termsprawlctl", site / "termsprawlctl", ignore=shutil.ignore_patterns("__pycache__"))
    target = folder / "stock"
    words = ["--site-packages", site, "-e", "termsprawlctl.__main__:main", "-p", PYTHON, "-o", target, "--compile-pyc"]
    subprocess.run([shiv, *words], check=True, capture_output=True)
    return target


def rows(program: str, runs: int) -> list[Row]:
    """Wall time, CPU time and peak memory of `doctor`, against each of the others."""
    with tempfile.TemporaryDirectory(prefix="b") as place:
        folder = Path(place)
        env = {"PATH": f"{os.path.dirname(PYTHON)}:/usr/bin:/bin", "LANG": "C.UTF-8"}
        python3 = os.path.join(os.path.dirname(PYTHON), "python3")
        if os.path.realpath(python3) != os.path.realpath(PYTHON):
            (folder / "bin").mkdir()
            (folder / "bin" / "python3").symlink_to(PYTHON)
            env["PATH"] = f"{folder / 'bin'}:/usr/bin:/bin"
        stock, node = stock_shiv(folder), shutil.which("node")
        with ScriptedServer(replying(answer(SESSION_INFO))) as server:
            env["TERMSPRAWL_SESSION_FILE"] = str(SessionFiles(folder, server.port).session)
            env["SHIV_ROOT"] = str(folder / "shiv")
            ours = Subject("ours", "ours", [program, "doctor"], env, folder)
            others = [
                Subject("bare", "python3 -I -S -c pass", [PYTHON, "-I", "-S", "-c", "pass"], env, folder),
                Subject("plain", "python3 -c pass", [PYTHON, "-c", "pass"], env, folder),
                Subject("module", "python3 -m termsprawlctl", [PYTHON, "-m", "termsprawlctl", "doctor"], env, ROOT),
            ]
            if stock:
                others.append(Subject("shiv", "stock shiv packaging", [stock, "doctor"], env, folder))
            if node:
                client = ROOT / "tests" / "support" / "node_client.mjs"
                others.append(Subject("node", "30 lines of Node.js", [node, client], env, folder))
            measure([ours, *others], runs)
    found = []
    columns = (
        ("wall", "wall time", "ms", 1000),
        ("cpu", "CPU time", "ms", 1000),
        ("memory", "memory", "MiB", 1 / 1024),
    )
    for number, (key, what, unit, factor) in enumerate(columns):
        beside = {other.name: (other.key, other.column(number)) for other in others}
        if not stock:
            beside["stock shiv packaging"] = ("shiv", "shiv is not installed")
        if not node:
            beside["30 lines of Node.js"] = ("node", "node is not on PATH")
        found += compared(f"doctor {key}", f"doctor: {what}", ours.column(number), beside, unit, factor)
    return found


def site_modules() -> int:
    """How much this machine's site hooks add to each plain start; they flatter us where there are many."""
    count = "import sys; print(len(sys.modules))"
    counts = [
        int(subprocess.run([PYTHON, *options, "-c", count], capture_output=True, check=True).stdout)
        for options in ([], ["-I", "-S"])
    ]
    return counts[0] - counts[1]
