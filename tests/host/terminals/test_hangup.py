"""A started host outlives the terminal that it was started from."""

from __future__ import annotations

import os
import pty
import signal


def test_a_started_host_outlives_the_terminal_it_was_started_from(host):
    host.stop()
    pid, terminal = pty.fork()
    if pid == 0:
        words = [host.ctl, "host", "start", "--data", str(host.data), "--project", str(host.project)]
        os.execve("/bin/sh", ["sh", "-c", '"$@"; echo started; exec sleep 600', "sh", *words], host.env)
    shown = b""
    while b"started" not in shown:
        shown += os.read(terminal, 4096)
    os.close(terminal)  # the terminal is gone: SIGHUP to its session
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert host.value("session_info")["nodeId"].startswith("cli-")
    node = host.value("terminal_open")["nodeId"]
    os.kill(host.pid(), signal.SIGHUP)
    # The signal is handled before any later request is.
    assert host.value("terminal_read", nodeId=node)["nodeId"] == node
