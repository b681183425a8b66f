"""A host with one fault in it, and what has to hold after it."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

from support.faults import Marked

FAULTY = Path(__file__).with_name("faulty.py")
# Every one of them, or in the short form one of each kind.
LONG = os.environ.get("FUZZ_PROFILE") == "long"
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}")
_RANDOM = re.compile(r"[0-9a-f]{8,}|\d+")


class FaultyHost:
    """`host run` on its own data directory, with a plan for faults (see faulty.py); no `step` in it: none."""

    def __init__(self, ctl: str, root: Path, env: dict[str, str]) -> None:
        self.ctl = ctl
        self.root = root
        self.data = root / "data"
        self.project = root / "project"
        self.project.mkdir(exist_ok=True)
        self.marked = Marked({**env, "HOME": str(root), "SHELL": "/bin/sh", "TMPDIR": str(root)})
        self._plan = root / "plan.json"
        self._plans = 0
        self._trace = root / "trace"
        self._clock = root / "clock"
        self.set_clock(0)
        self.process: subprocess.Popen | None = None
        self.said = ""
        self.session = ""

    # --- the host

    def plan(self, do: str = "", step: int = 0, **more) -> None:
        """What is to happen from now on; the steps of before are forgotten."""
        self._trace.write_bytes(b"")
        roots = [str(self.data), str(self.project)]
        self._plans += 1
        content = {"roots": roots, "serial": self._plans, "step": step, "do": do}
        content.update(trace=str(self._trace), clock=str(self._clock), **more)
        # In one step: a thread may begin to read it at any moment.
        new = self._plan.with_suffix(".new")
        new.write_text(json.dumps(content))
        new.replace(self._plan)

    def set_clock(self, off_s: float) -> None:
        """Let the host's wall clock go so many seconds ahead of what it was at the start, or behind."""
        new = self._clock.with_suffix(".new")
        new.write_text(str(off_s))
        new.replace(self._clock)

    def steps(self) -> list[str]:
        """What has been done since plan(): `kind path`, without what is random in it."""
        lines = self._trace.read_text().replace(str(self.root), "").splitlines()
        return [_RANDOM.sub("*", line.partition(" ")[2]) for line in lines]

    def run(self) -> bool:
        """Start it; whether it got ready."""
        words = ["host", "run", "--data", str(self.data), "--project", str(self.project)]
        self.process = subprocess.Popen(
            [sys.executable, "-ISBXutf8", str(FAULTY), str(self._plan), self.ctl, *words],
            env=self.marked.env,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        line = self.process.stdout.readline()
        if line:
            (self.session,) = shlex.split(line.decode().partition("=")[2])
        return bool(line)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Have it end, if it has not; its exit status. What it said is in `said`."""
        self.process.send_signal(number)
        _, said = self.process.communicate(timeout=60)
        self.said = said.decode()
        assert "Traceback" not in self.said, self.said
        assert "internal error" not in self.said, self.said
        return self.process.returncode

    # --- from outside

    def ctl_run(self, *words: str, **options) -> subprocess.CompletedProcess:
        """Run the built file, without faults, to its end."""
        options = {"env": self.marked.env, "cwd": self.project, "timeout": 60, "stdin": subprocess.DEVNULL, **options}
        return subprocess.run([self.ctl, *words], capture_output=True, check=False, **options)

    def call(self, operation: str, **args) -> dict:
        """The ToolResult of an operation."""
        from termsprawlctl.app import transport

        return transport.call(self.session, operation, args)

    def tmux(self, *words: str) -> str:
        socket = self.data / "tmux-sockets" / "termsprawl"
        argv = ["tmux", "-S", str(socket), *words]
        done = subprocess.run(argv, env=self.marked.env, capture_output=True, check=False, timeout=20)
        return done.stdout.decode().strip()

    def sessions(self) -> set[str]:
        """The nodes that tmux runs."""
        names = self.tmux("list-sessions", "-F", "#{session_name}").split()
        return {name[len("ts-") :] for name in names}

    # --- what has to hold

    def assert_whole(self) -> None:
        """Every JSON file is one."""
        for root in (self.data, self.project):
            for path in root.rglob("*.json"):
                json.loads(path.read_bytes())

    def temporary(self) -> list[str]:
        """The files that were only meant to be there for a moment."""
        found = [path for root in (self.data, self.project) for path in root.rglob(".*")]
        return [str(path.relative_to(self.root)) for path in found if TEMPORARY.fullmatch(path.name)]

    def assert_next_works(self) -> None:
        """A new host starts on what is there, answers, stops, and takes everything along."""
        started = self.ctl_run("host", "start", "--data", str(self.data))
        assert started.returncode == 0, started.stderr.decode()
        (session,) = shlex.split(started.stdout.decode().partition("=")[2])
        doctor = self.ctl_run("doctor", "--session", session)
        assert doctor.returncode == 0, doctor.stdout
        assert not self.temporary()
        stopped = self.ctl_run("host", "stop", "--kill-sessions", "--data", str(self.data))
        assert stopped.returncode == 0, stopped.stderr.decode()
        self.assert_whole()
        self.marked.assert_gone()
        left = {path.name for path in (self.data / "agent-tools").iterdir()}
        assert not left & {"endpoint.json", "server.lock"}

    def close(self) -> None:
        """Whatever a failed test left."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
        self.tmux("kill-server")
        self.marked.end()


def chosen(steps: list[str], every: int = 1) -> list[int]:
    """The numbers of the steps to make a fault of: all in the long form, else every n-th of those of different kinds.

    The same act on the same directory after the same act is of one kind.
    """
    if LONG:
        return list(range(1, len(steps) + 1))
    seen: set = set()
    found = []
    before = ""
    for number, step in enumerate(steps, 1):
        kind, _, path = step.partition(" ")
        key = (before, kind, os.path.dirname(path))
        before = kind
        if key not in seen:
            seen.add(key)
            found.append(number)
    return found[::every]
