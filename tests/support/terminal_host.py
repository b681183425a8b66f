"""A running host whose terminals run a shell of choice, called from the test's own process."""

from __future__ import annotations

import shutil
import threading

import pytest

from termsprawlctl.app import transport

from .running_host import RunningHost


class TerminalHost(RunningHost):
    """With its terminals as objects."""

    def open(self) -> Terminal:
        return Terminal(self, self.value("terminal_open")["nodeId"])

    def script(self, name: str, content: str) -> str:
        """The path of a file in the project's folder."""
        path = self.project / name
        path.write_text(content)
        return str(path)


class Terminal:
    """One terminal of a host."""

    def __init__(self, host: TerminalHost, node_id: str) -> None:
        self.host = host
        self.node_id = node_id

    def call(self, operation: str, **args) -> dict:
        return self.host.call(operation, nodeId=self.node_id, **args)

    def value(self, operation: str, **args) -> dict:
        return self.host.value(operation, nodeId=self.node_id, **args)

    def run(self, command: str, **args) -> dict:
        return self.value("terminal_run", command=command, **args)

    def refusal(self, operation: str, **args) -> str:
        result = self.call(operation, **args)
        assert not result["ok"], result
        return result["error"]

    def screen(self) -> str:
        return self.value("terminal_read", maxChars=100_000)["output"]

    def type(self, text: str) -> None:
        self.value("terminal_input", text=text)

    def wait_for(self, text: str) -> str:
        return self.host.wait_for_text(self.node_id, text)

    def in_background(self, operation: str, **args) -> Background:
        """A call in a thread of its own; the host has begun it when this returns."""
        started = Background(self.host.session_file, operation, {"nodeId": self.node_id, **args})
        # Calls of a project begin in the order in which they came: this one comes after.
        self.value("terminal_wait", idleMs=150)
        return started


class Background:
    """A call in a thread of its own."""

    def __init__(self, session: str, operation: str, args: dict) -> None:
        self._result: dict = {}
        connected = threading.Event()

        def call() -> None:
            answer = transport.call(session, operation, args, connected=lambda _socket: connected.set())
            self._result.update(answer)
            connected.set()

        self._thread = threading.Thread(target=call, daemon=True)
        self._thread.start()
        connected.wait(30)

    def value(self) -> dict:
        """The value that it came to; it has to end by itself."""
        self._thread.join(60)
        assert not self._thread.is_alive(), "the call did not end"
        assert self._result["ok"], self._result
        return self._result["value"]

    def error(self) -> str:
        self._thread.join(60)
        assert not self._thread.is_alive(), "the call did not end"
        assert not self._result["ok"], self._result
        return self._result["error"]


def start_host(ctl: str, root, env: dict[str, str], shell: str) -> TerminalHost:
    """Start a host; skips the test when the shell is not installed. The caller stops it."""
    binary = shutil.which(shell, path=env["PATH"])
    if binary is None:
        pytest.skip(f"{shell} is not installed (tests/counterparts/apt-shells.txt)")
    (root / ".zshrc").write_text("")  # else zsh asks a newcomer questions
    host = TerminalHost(ctl, root, {**env, "HOME": str(root), "SHELL": binary})
    host.start()
    return host
