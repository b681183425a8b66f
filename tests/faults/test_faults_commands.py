"""Commands beside a running host: each with one thing of the system failing at one of its steps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.host_faults import FAULTY, LONG, FaultyHost

KINDS = {
    "EMFILE": ["open-read", "open-write", "list", "pipe", "popen", "socket"],
    "ENOSPC": ["mkdir", "open-write", "write", "truncate", "fsync", "rename"],
    "EACCES": ["open-read", "open-write", "mkdir", "rename", "list", "socket"],
}
# NODE is a terminal's id, PERSON the operator's, OTHER a data directory on which nothing runs yet.
COMMANDS = [
    "doctor --explain",
    "call canvas_list",
    "map",
    "map --svg PROJECT/map.svg",
    "external NODE --dry-run",
    "attach NODE",
    "launch nothing",
    "host status",
    "host log",
    "host link PERSON NODE",
    "host links",
    "host start",
    "host start --data OTHER",
    "host stop --data OTHER --kill-sessions",
]
# In the short form every so many steps of all that there are, whatever the command.
EVERY = 1 if LONG else 11


@pytest.fixture(scope="module")
def host(ctl, tmp_path_factory):
    env = {"PATH": os.pathsep.join([os.path.join(sys.base_prefix, "bin"), os.environ["PATH"]])}
    one = FaultyHost(ctl, tmp_path_factory.mktemp("c"), env)
    one.marked.env["TERMSPRAWL_DATA"] = str(one.data)
    one.plan()
    assert one.run()
    one.marked.env["TERMSPRAWL_SESSION_FILE"] = one.session
    one.kept = one.call("terminal_open")["value"]["nodeId"]
    yield one
    one.close()


def run_faulty(host, words: list[str], **plan) -> tuple[subprocess.CompletedProcess, int]:
    """A command with a fault in it, and how many steps it had."""
    path, trace = host.root / "command.json", host.root / "command.steps"
    trace.write_bytes(b"")
    path.write_text(json.dumps({"roots": [str(host.root)], "trace": str(trace), **plan}))
    done = subprocess.run(
        [sys.executable, "-ISBXutf8", str(FAULTY), str(path), host.ctl, *words],
        env=host.marked.env,
        cwd=host.project,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )
    return done, len(trace.read_text().splitlines())


@pytest.mark.parametrize("command", COMMANDS)
def test_a_shortage_at_any_step_of_a_command_is_told_and_hurts_no_host(host, command):
    other = host.root / "other"
    names = {
        "NODE": host.kept,
        "PERSON": Path(host.session).stem,
        "OTHER": str(other),
        "PROJECT/map.svg": str(host.project / "map.svg"),
    }
    words = [names.get(word, word) for word in command.split()]
    offset = COMMANDS.index(command)
    for name, kinds in KINDS.items():
        _, count = run_faulty(host, words, step=0, kinds=kinds)
        for number in range(1 + offset % EVERY, count + 1, EVERY):
            done, _ = run_faulty(host, words, step=number, do=name, kinds=kinds)
            said = done.stderr.decode()
            assert done.returncode in (0, 1, 2), said
            assert "Traceback" not in said, (name, number, said)
            assert "internal error" not in said, (name, number, said)
            assert done.returncode == 0 or done.stdout or said.startswith("termsprawlctl: "), said
        offset += count
    assert host.call("session_info")["ok"]
    if "OTHER" in command:
        stopped = host.ctl_run("host", "stop", "--data", str(other), "--kill-sessions")
        assert stopped.returncode == 0, stopped.stderr
        assert not (other / "agent-tools" / "server.lock").exists()
    assert not host.temporary()
    host.assert_whole()
