"""The word to end a run is heard whenever it comes, also together with the order to start it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
BOOT = "import sys;sys.path.insert(0,sys.argv.pop(1));from termsprawlctl.agents.supervise import main;main()"
PATIENCE_S = 20.0
# How long the CLI may take to end after the signal that it is asked with: longer than the test waits.
POLITE_S = 600.0


@pytest.mark.parametrize("turn", range(5))  # what it is about is a race
def test_a_run_that_is_ended_while_it_starts_ends_at_the_first_signal(tmp_path, turn):
    from termsprawlctl.agents.supervise import encode_order

    order = {
        "argv": ["/bin/sleep", "600"],
        "cwd": "/",
        "marker": "0123456789abcdef",
        "polite": [("SIGINT", POLITE_S)],
        "remove": [],
        "empty": [],
        "held": os.open(tmp_path, os.O_RDONLY),
    }
    ours, theirs = socket.socketpair()
    command = [sys.executable, "-ISB", "-c", BOOT, str(ROOT), str(theirs.fileno())]
    supervisor = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno(), order["held"]], start_new_session=True
    )
    theirs.close()
    os.close(order["held"])
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
