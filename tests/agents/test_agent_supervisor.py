"""The process beside a run: it hears the word to end it whenever that comes, and starts from the server's own file."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.scripted_agent import Box, structured

ROOT = Path(__file__).resolve().parent.parent.parent
BOOT = "import sys;sys.path.insert(0,sys.argv.pop(1));from termsprawlctl.agents.runs.supervise import main;main()"
PATIENCE_S = 20.0
# How long the CLI may take to end after the signal that it is asked with: longer than the test waits.
POLITE_S = 600.0


@pytest.mark.parametrize("turn", range(5))  # what it is about is a race
def test_a_run_that_is_ended_while_it_starts_ends_at_the_first_signal(tmp_path, turn):
    from termsprawlctl.agents.runs.supervise import encode_order

    order = {
        "argv": ["/bin/sleep", "600"],
        "cwd": "/",
        "marker": "0123456789abcdef",
        "stop_signals": [("SIGINT", POLITE_S)],
        "keep": False,
        "remove": [],
        "empty": [],
        "held": [os.open(tmp_path, os.O_RDONLY)],
    }
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-ISB", "-c", BOOT, str(ROOT), str(theirs.fileno())]
    supervisor = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno(), *order["held"]], start_new_session=True
    )
    theirs.close()
    os.close(order["held"][0])
    try:
        ours.settimeout(PATIENCE_S)
        ours.sendall(encode_order(order) + b"end\n")
        said = b""
        while b"left" not in said:
            piece = ours.recv(4096)
            assert piece, said
            said += piece
        assert said.splitlines()[1:] == [b"exit %d" % -signal.SIGINT, b"left 0"]
        ours.close()
        assert supervisor.wait(PATIENCE_S) == 0
    finally:
        ours.close()
        supervisor.kill()
        supervisor.wait()


@pytest.mark.parametrize("then", ["another", "none"])
def test_a_server_runs_agents_from_the_file_that_it_was_started_from(ctl, tmp_path, hermetic_env, then):
    path = shutil.copy2(ctl, tmp_path / "termsprawlctl")
    box = Box(str(path), tmp_path, hermetic_env)
    # The CLI gets three descriptors and none of ours.
    box.script("begin()\nend(' '.join(sorted(os.listdir('/proc/self/fd'))))\n")
    with box.server() as server:
        for turn in range(2):
            told = structured(server.answer_to(server.call("run", prompt="p")))
            assert told["status"] == "completed", told
            assert told["answer"] == "0 1 2 3", "the third is that of the list"
            if turn == 0 and then == "another":
                (tmp_path / "newer").write_bytes(b"#!/bin/sh\n" + bytes(path.stat().st_size // 2))
                (tmp_path / "newer").rename(path)
            elif turn == 0:
                path.unlink()
        assert server.log() == ""
