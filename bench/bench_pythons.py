"""How fast the file starts with every Python of this machine, against that Python's bare start."""

from __future__ import annotations

import json
import tempfile
from collections import namedtuple
from pathlib import Path

from bench_mcp import LIST
from bench_start import SESSION_INFO, Subject, measure
from support import pythons
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles

HEAD = "| Python | `python3 -I -S -c pass` | `doctor`: wall, CPU | `mcp` to `tools/list`: wall | `doctor`: memory |"

# python: as "3.9"; bare_ms: its bare start; doctor_wall, doctor_cpu, mcp_wall: times that; doctor_mib: peak memory.
Start = namedtuple("Start", "python bare_ms doctor_wall doctor_cpu mcp_wall doctor_mib")


def starts(program: str, runs: int) -> list[Start]:
    """The whole command, with the shell that starts it, for each Python: the least of interleaved rounds."""
    found = {f"{major}.{minor}": path for (major, minor), path in pythons.installed().items() if major == 3}
    found = {name: path for name, path in found.items() if name in pythons.every_kind()}
    with tempfile.TemporaryDirectory(prefix="b") as place:
        folder = Path(place)
        asked = folder / "asked"
        asked.write_text(json.dumps(LIST) + "\n")
        with ScriptedServer(replying(answer(SESSION_INFO))) as server:
            session = str(SessionFiles(folder, server.port).session)
            subjects = {name: _subjects(program, path, folder / name, asked, session) for name, path in found.items()}
            measure([one for three in subjects.values() for one in three], runs)
    return [_start(name, *three) for name, three in subjects.items()]


def _subjects(program: str, python: str, folder: Path, asked: Path, session: str) -> list[Subject]:
    """A bare start, `doctor`, and `mcp` until it has answered tools/list and its input ends."""
    folder.mkdir()
    (folder / "python3").symlink_to(python)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "LANG": "C.UTF-8", "TERMSPRAWL_SESSION_FILE": session}
    return [
        Subject("bare", f"{python} -I -S -c pass", [python, "-I", "-S", "-c", "pass"], env, folder),
        Subject("doctor", f"doctor with {python}", [program, "doctor"], env, folder),
        Subject("mcp", f"mcp with {python}", [program, "mcp"], env, folder, stdin=asked),
    ]


def _start(name: str, bare: Subject, doctor: Subject, mcp: Subject) -> Start:
    wall_s, cpu_s = min(bare.column(0)), min(bare.column(1))
    return Start(
        name,
        wall_s * 1000,
        min(doctor.column(0)) / wall_s,
        min(doctor.column(1)) / cpu_s,
        min(mcp.column(0)) / wall_s,
        min(doctor.column(2)) / 1024,
    )


def markdown(rows: list[Start]) -> str:
    """The table of docs/performance.md."""
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    lines += [
        f"| {row.python} | {row.bare_ms:.1f} ms | {row.doctor_wall:.2f} times, {row.doctor_cpu:.2f} times "
        f"| {row.mcp_wall:.2f} times | {row.doctor_mib:.1f} MiB |"
        for row in rows
    ]
    return "\n".join(lines)
