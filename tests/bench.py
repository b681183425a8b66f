"""Measure the built file: `python tests/bench.py dist/termsprawlctl [--runs N]`.

Everything is measured side by side: one run of each program after the other, many
rounds, medians. Only the ratios mean something on another machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_agents
import bench_mcp
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles

ROOT = Path(__file__).resolve().parent.parent
PYTHON = os.path.join(sys.base_prefix, "bin", f"python3.{sys.version_info[1]}")
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
CALLS_PER_ROUND = 160  # shared by the clients of a round
CLIENTS = (1, 8)

# Starts a program and says what it took: wall seconds, CPU seconds, peak KiB. A process of its own, and
# a bare Python, because a child's peak begins with the memory of what it was forked from.
RUNNER = r"""
import json, os, resource, sys, time
null = os.open(os.devnull, os.O_RDWR)
for line in sys.stdin:
    job = json.loads(line)
    os.chdir(job["cwd"])
    wiring = [(os.POSIX_SPAWN_DUP2, null, number) for number in (0, 1, 2)]
    start = time.perf_counter()
    pid = os.posix_spawn(job["argv"][0], job["argv"], job["env"], file_actions=wiring)
    _, status, usage = os.wait4(pid, 0)
    wall = time.perf_counter() - start
    peak = usage.ru_maxrss // (1024 if sys.platform == "darwin" else 1)
    print(json.dumps([os.waitstatus_to_exitcode(status), wall, usage.ru_utime + usage.ru_stime, peak]), flush=True)
"""
# Waits for a line, then calls as fast as it can through the archive's own transport.
CLIENT = r"""
import sys
archive, session, calls = sys.argv[1:]
sys.path.insert(0, archive)
from termsprawlctl.session.transport import call
assert call(session, "session_info")["ok"]
print("ready", flush=True)
for line in sys.stdin:
    for _ in range(int(calls)):
        assert call(session, "session_info")["ok"]
    print("done", flush=True)
"""


class Subject:
    """One program to measure: argv with an absolute path, its environment and folder."""

    def __init__(self, name: str, argv: list, env: dict, cwd: Path) -> None:
        self.name = name
        self.job = {"argv": [str(word) for word in argv], "env": env, "cwd": str(cwd)}
        self.rounds: list[tuple[float, float, int]] = []

    def median(self, column: int) -> float:
        """Column 0: wall seconds, 1: CPU seconds, 2: peak KiB."""
        return statistics.median(values[column] for values in self.rounds)


def measure(subjects: list[Subject], runs: int) -> None:
    """Run all subjects in turn; each round begins with another one. Two rounds warm up."""
    runner = subprocess.Popen(
        [PYTHON, "-ISB", "-c", RUNNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    with runner:
        for number in range(-2, runs):
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


def calls_per_second(archive: str, session: str, env: dict, runs: int) -> dict[int, float]:
    """Number of clients, each a process, to the median of their calls per second together."""
    rates: dict[int, list[float]] = {clients: [] for clients in CLIENTS}
    with contextlib.ExitStack() as stack:
        crews = {}
        for clients in CLIENTS:
            words = [PYTHON, "-ISB", "-c", CLIENT, archive, session, str(CALLS_PER_ROUND // clients)]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
            crews[clients] = [stack.enter_context(subprocess.Popen(words, env=env, **pipes)) for _ in range(clients)]
        for crew in crews.values():
            for client in crew:
                client.stdout.readline()
        for _ in range(runs):
            for clients, crew in crews.items():
                rates[clients].append(CALLS_PER_ROUND / seconds_of(crew))
        for crew in crews.values():
            for client in crew:
                client.stdin.close()
    return {clients: statistics.median(values) for clients, values in rates.items()}


def seconds_of(crew: list) -> float:
    """How long the clients need for their calls, started together."""
    start = time.perf_counter()
    for client in crew:
        client.stdin.write("go\n")
    for client in crew:
        client.stdout.readline()
    return time.perf_counter() - start


@contextlib.contextmanager
def running_host(program: str, env: dict, folder: Path):
    """The session file of an embedded host, or the reason why there is none as an exception."""
    (folder / "project").mkdir()
    place = ["--data", str(folder / "data")]
    done = subprocess.run(
        [program, "host", "start", *place, "--project", str(folder / "project")],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"host start ended with status {done.returncode}")
    try:
        yield shlex.split(done.stdout.partition("=")[2])[0]
    finally:
        subprocess.run([program, "host", "stop", *place, "--kill-sessions"], env=env, check=False, capture_output=True)


def print_table(rows: list[list[str]]) -> None:
    """The first column left, all others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


def print_machine(program: str, node: str | None) -> None:
    models = [line.partition(":")[2].strip() for line in read("/proc/cpuinfo").splitlines() if "model name" in line]
    model = models[0] if models else platform.processor() or platform.machine()
    system = f"{platform.system()} {platform.release()}"
    print(f"machine  {system}, {os.cpu_count()} x {model}, load {os.getloadavg()[0]:.1f}")
    print(f"python   {platform.python_version()}, {PYTHON}; its site adds {site_modules()} modules to a plain start")
    print(f"node     {version_of(node, '--version') if node else 'not installed'}")
    print(f"tmux     {version_of(shutil.which('tmux') or '', '-V')}")
    print(f"file     {program}, {os.path.getsize(program) / 1024:.1f} KiB, {version_of(program, '--version')}")


def read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""


def version_of(program: str, option: str) -> str:
    if not program:
        return "not installed"
    return subprocess.run([program, option], capture_output=True, text=True, check=False).stdout.strip()


def site_modules() -> int:
    """How much this machine's site hooks add to each plain start; they flatter us where there are many."""
    count = "import sys; print(len(sys.modules))"
    counts = [
        int(subprocess.run([PYTHON, *options, "-c", count], capture_output=True, check=True).stdout)
        for options in ([], ["-I", "-S"])
    ]
    return counts[0] - counts[1]


def start_up(program: str, node: str | None, runs: int, folder: Path) -> None:
    env = {"PATH": f"{os.path.dirname(PYTHON)}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    python3 = os.path.join(os.path.dirname(PYTHON), "python3")
    if os.path.realpath(python3) != os.path.realpath(PYTHON):
        (folder / "bin").mkdir()
        (folder / "bin" / "python3").symlink_to(PYTHON)
        env["PATH"] = f"{folder / 'bin'}:/usr/bin:/bin"
    with ScriptedServer(replying(answer(SESSION_INFO))) as server:
        files = SessionFiles(folder, server.port)
        env["TERMSPRAWL_SESSION_FILE"] = str(files.session)
        env["SHIV_ROOT"] = str(folder / "shiv")
        bare = Subject("python3 -I -S -c pass", [PYTHON, "-I", "-S", "-c", "pass"], env, folder)
        ours = Subject("built file: doctor", [program, "doctor"], env, folder)
        subjects = [bare, ours]
        subjects.append(Subject("python3 -c pass", [PYTHON, "-c", "pass"], env, folder))
        subjects.append(Subject("python3 -m: doctor", [PYTHON, "-m", "termsprawlctl", "doctor"], env, ROOT))
        stock = stock_shiv(folder)
        if stock:
            subjects.append(Subject("stock shiv: doctor", [stock, "doctor"], env, folder))
        if node:
            client = ROOT / "tests" / "support" / "node_client.mjs"
            subjects.append(Subject("node: the same call", [node, client], env, folder))
        measure(subjects, runs)
    rows = [["", "wall ms", "CPU ms", "peak MiB", "wall", "CPU", "memory"]]
    for subject in subjects:
        wall_s, cpu_s, peak_kib = (subject.median(column) for column in range(3))
        figures = [f"{wall_s * 1000:.1f}", f"{cpu_s * 1000:.1f}", f"{peak_kib / 1024:.1f}"]
        against = [f"{subject.median(column) / bare.median(column):.2f} x" for column in range(3)]
        rows.append([subject.name, *figures, *against])
    print(f"\nstart-up, medians of {runs} interleaved runs; on the right against {bare.name}")
    print_table(rows)
    print("\nthe built file against the others")
    by_name = {subject.name: subject for subject in subjects}
    rows = [["", "wall", "CPU", "memory", "aim"]]
    aims = {
        bare.name: "wall and CPU 4 x or less",
        "node: the same call": "wall and memory 0.25 x or less",
    }
    for name, other in by_name.items():
        if other is not ours:
            ratios = [f"{ours.median(column) / other.median(column):.2f} x" for column in range(3)]
            rows.append([name, *ratios, aims.get(name, "")])
    print_table(rows)
    print(f"peak memory of the built file: {ours.median(2) / 1024:.1f} MiB (aim: 20 MiB or less)")
    for name, present in (("shiv", stock), ("node", node)):
        if not present:
            print(f"not compared with {name}: it is not installed")


def host(program: str, runs: int, folder: Path) -> None:
    print(f"\nembedded host, session_info calls per second, medians of {runs} rounds of {CALLS_PER_ROUND} calls")
    env = {"PATH": f"{os.path.dirname(PYTHON)}:{os.environ['PATH']}", "HOME": str(folder), "SHELL": "/bin/sh"}
    try:
        with running_host(program, env, folder) as session:
            rates = calls_per_second(program, session, env, runs)
    except (OSError, RuntimeError, subprocess.SubprocessError) as reason:
        print(f"not measured: {reason}")
        return
    rows = [["clients", "calls/s", "against one"]]
    rows += [[str(clients), f"{rate:.0f}", f"{rate / rates[1]:.2f} x"] for clients, rate in rates.items()]
    print_table(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the built file.")
    parser.add_argument("program", help="the built file")
    parser.add_argument("--runs", type=int, default=25, help="rounds, 15 or more for figures that mean something")
    options = parser.parse_args()
    program = os.path.abspath(options.program)
    node = shutil.which("node")
    print_machine(program, node)
    # Short, because sockets are made in it.
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        start_up(program, node, options.runs, Path(folder))
        host(program, options.runs, Path(folder))
    print("\nMCP server, against one on the official Python SDK")
    print_table([["", "ours", "the other's", "ratio"], *map(list, bench_mcp.rows(program))])
    print("\ncoding agent behind a tool, against the bare CLI")
    print_table([["", "ours", "the other's", "ratio"], *map(list, bench_agents.rows(program))])


if __name__ == "__main__":
    main()
