"""Sharing a tmux client under faults: nothing of it is left, the user's tmux is as it was, and the next share works."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from support import faults, processes
from support.mcp_client import McpServer
from support.tui_share import RunningShare, ask, dial, frame, one_line
from support.waiting import PATIENCE_S, until

GET = {"operation": "get_view_context"}
# tmux as it is, but for its AT-th call: before that comes DO, with the caller's number in $caller.
COUNTING_TMUX = """\
#!/bin/sh
count=1
while ! mkdir "$COUNT/$count" 2>/dev/null; do  # several may come at once
    count=$((count + 1))
done
if [ $count -eq "$AT" ]; then
    caller=$PPID
    eval "$DO"
fi
exec {tmux} "$@"
"""


class Sharing:
    """`tui share` with something that happens at one of its calls of tmux."""

    def __init__(self, ctl: str, tmux, folder: Path) -> None:
        self.tmux = tmux
        self.argv = [ctl, "tui", "share", "--socket-path", tmux.socket]
        programs = folder / "programs"
        programs.mkdir()
        real = shutil.which("tmux", path=tmux.env["PATH"])
        (programs / "tmux").write_text(COUNTING_TMUX.format(tmux=real))
        (programs / "tmux").chmod(0o755)
        self.count = folder / "count"
        self.count.mkdir()
        path = f"{programs}{os.pathsep}{tmux.env['PATH']}"
        self.marked = faults.Marked({**tmux.env, "PATH": path, "COUNT": str(self.count)})
        self.before = self.state()

    def state(self) -> tuple:
        """What the user would notice: clients, panes, keys and all options."""
        return (
            self.tmux.clients(),
            self.tmux.run("list-panes", "-a", "-F", "#{pane_id}"),
            self.tmux.run("show-options", "-g"),
            self.tmux.run("show-options", "-t", "one"),
            self.tmux.run("list-keys"),
        )

    def clear(self) -> None:
        """Any other `tui` command, which takes away what a killed share left."""
        subprocess.run([self.argv[0], "tui", "status"], env=self.tmux.env, capture_output=True, check=True)

    def move_to(self, tmux) -> None:
        """Share a client of another server."""
        self.tmux = tmux
        self.argv[-1] = tmux.socket
        self.marked.env.update(TMPDIR=tmux.env["TMPDIR"])

    def start(self, at: int, what: str, *words: str, before: tuple | list = ()) -> subprocess.Popen:
        self.begin_to_count()
        null = subprocess.DEVNULL
        env = {**self.marked.env, "AT": str(at), "DO": what}
        argv = [*before, *self.argv, *words]
        return subprocess.Popen(argv, env=env, stdin=null, stdout=null, stderr=subprocess.PIPE)

    def first_words(self, process: subprocess.Popen) -> str:
        """What it says when it has started, or why it could not."""
        return process.stderr.readline().decode()

    def end(self, process: subprocess.Popen) -> None:
        """End it, if it runs, whatever it was started with."""
        for pid, line in self.marked.alive().items():
            if " tui share " in line and "strace" not in line:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
        process.wait(PATIENCE_S)
        process.stderr.close()

    def calls(self) -> int:
        return len(os.listdir(self.count))

    def begin_to_count(self) -> None:
        shutil.rmtree(self.count, ignore_errors=True)
        self.count.mkdir()

    def directories(self) -> list[str]:
        return [name for name in os.listdir(self.tmux.env["TMPDIR"]) if name.startswith("termsprawl-tui-")]

    def number_of_calls(self, *words: str) -> tuple[int, int]:
        """How many calls of tmux a share makes until it has started, and until it has ended."""
        self.begin_to_count()
        share = RunningShare([*self.argv, *words], {**self.marked.env, "AT": "0", "DO": ""})
        started = self.calls()
        share.stop()
        return started, self.calls()

    def end_at(self, at: int, started: int, number: int, *words: str) -> None:
        """Start a share that gets a signal when it makes this call, and see it end."""
        process = self.start(at, f"kill -{number:d} $caller", *words)
        until(lambda: process.poll() is not None or self.calls() >= min(at, started))
        if at > started:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        process.stderr.close()

    def assert_gone(self, told: str) -> None:
        self.marked.assert_gone()
        until(lambda: self.state() == self.before, lambda: f"{told}: {self.state()} instead of {self.before}")

    def assert_works(self, *words: str) -> None:
        share = RunningShare([*self.argv, *words], self.tmux.env)
        assert ask(share.path, GET)["status"] == "context"
        assert len(self.directories()) == 1
        share.stop()
        assert self.directories() == []
        until(lambda: self.state() == self.before, lambda: f"{self.state()} instead of {self.before}")


@pytest.fixture
def sharing(ctl, tmux, tmp_path):
    made = Sharing(ctl, tmux, tmp_path)
    yield made
    made.marked.end()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_ended_at_whichever_call_of_tmux_a_share_leaves_the_users_tmux_as_it_was(sharing, number):
    started, ended = sharing.number_of_calls()
    for at in range(1, ended + 1, 1 if number == signal.SIGKILL else 3):
        sharing.end_at(at, started, number)
        if number == signal.SIGKILL:
            sharing.marked.assert_gone()
            sharing.clear()
        sharing.assert_gone(f"call {at}")
        assert sharing.directories() == [], at
    sharing.assert_works()


def test_a_tmux_that_is_killed_at_whichever_call_ends_the_share_and_leaves_nothing(sharing, prepared):
    started, _ = sharing.number_of_calls()
    for at in range(2, started + 1):  # the first only asks for the version
        other = prepared.take()
        sharing.move_to(other)
        process = sharing.start(at, f"kill -9 {other.pid()}")
        _, said = process.communicate(timeout=PATIENCE_S)
        assert b"Traceback" not in said, at
        assert b"internal error" not in said, at
        sharing.marked.assert_gone()
        assert sharing.directories() == [], at


def test_a_share_can_be_revoked_while_tmux_does_not_answer_to_the_sign(sharing):
    started, _ = sharing.number_of_calls()
    server = sharing.tmux.pid()
    process = sharing.start(started, f"kill -STOP {server}")
    try:
        until(lambda: processes.state(server) == "T", "the last call of its start")
        (made,) = sharing.directories()
        process.send_signal(signal.SIGTERM)
        endpoint = Path(sharing.tmux.env["TMPDIR"], made, "endpoint.json")
        until(lambda: not endpoint.exists(), "the revocation", patience_s=5)
    finally:
        os.kill(server, signal.SIGCONT)
    process.wait(PATIENCE_S)
    process.stderr.close()
    sharing.clear()
    sharing.assert_gone("the sign")
    sharing.assert_works()


DAMAGES = {
    "the endpoint is removed": lambda folder: (folder / "endpoint.json").unlink(),
    "the endpoint is replaced": lambda folder: (
        (folder / "new").write_text("{}") and (folder / "new").rename(folder / "endpoint.json")
    ),
    "the socket is removed": lambda folder: (folder / "s").unlink(),
    "the directory is removed": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_share_whose_files_are_taken_away_can_still_be_ended(ctl, sharing, damage):
    share = RunningShare(sharing.argv, {**sharing.marked.env, "AT": "0", "DO": ""})
    DAMAGES[damage](share.folder)
    done = subprocess.run(
        [ctl, "tui", "context", "--endpoint", share.path],
        env=sharing.tmux.env,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode in (1, 2)
    assert share.members["token"].encode() not in done.stdout + done.stderr
    share.process.send_signal(signal.SIGTERM)
    assert share.ended() == 0
    sharing.assert_gone(damage)
    assert sharing.directories() == []
    sharing.assert_works()


def test_whichever_step_of_its_start_fails_a_share_says_so_and_leaves_nothing(sharing, tmp_path):
    faults.need_strace()
    calls = ("mkdir", "chmod", "bind", "listen", "fchmod", "fcntl", "flock", "socket", "pipe2")
    for call, error in [(call, "ENOSPC" if call == "mkdir" else "EMFILE") for call in calls]:
        before = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", os.devnull, "-e", f"trace={call}"]
        process = sharing.start(0, "", before=[*before, "-e", f"inject={call}:error={error}:when=1"])
        said = sharing.first_words(process)
        assert "Traceback" not in said, call
        assert "internal error" not in said, call
        sharing.end(process)
        sharing.marked.assert_gone()
        assert sharing.directories() == [], call
    sharing.assert_works()


def test_out_of_descriptors_a_share_answers_nobody_and_with_descriptors_again_it_does(sharing):
    share = RunningShare(sharing.argv, sharing.tmux.env)
    pid = share.process.pid
    with faults.without_descriptors(pid):
        waiting = dial(share.path)
        waiting.sendall(frame(share.path, GET))
        ticks = used_ticks(pid)
        time.sleep(1)
        assert used_ticks(pid) - ticks < 5, "it tries without a pause"
    assert one_line(waiting)["status"] == "context"
    waiting.close()
    assert share.stop() == 0
    assert sharing.directories() == []


def used_ticks(pid: int) -> int:
    """The processor time that a process has used, in hundredths of a second."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def test_an_adapter_out_of_descriptors_says_unavailable_and_with_descriptors_again_it_works(ctl, sharing):
    share = RunningShare(sharing.argv, sharing.tmux.env)
    with McpServer([ctl, "mcp", "tui", "--endpoint", share.path], sharing.tmux.env) as adapter:
        adapter.initialize()
        adapter.answer_to(adapter.call("get_view_context"))
        pid = adapter.process.pid
        opened = len(os.listdir(f"/proc/{pid}/fd"))
        with faults.without_descriptors(pid):
            answer = adapter.answer_to(adapter.call("get_view_context"))
        assert answer["result"]["structuredContent"] == {"status": "rejected", "code": "target_unavailable"}
        answer = adapter.answer_to(adapter.call("get_view_context"))
        assert answer["result"]["structuredContent"]["status"] == "context"
        assert len(os.listdir(f"/proc/{pid}/fd")) == opened
    share.stop()


def test_a_clock_that_jumps_at_each_look_neither_ends_a_share_nor_blocks_it_for_ever(ctl, sharing):
    argv = [*faults.with_jumping_clock(ctl), *sharing.argv[1:]]
    share = RunningShare(argv, sharing.tmux.env)
    context = share.quiet_context()
    assert context["ready"]
    assert share.select(context["sessionId"], context=context)["status"] == "applied"
    assert share.stop() == 0
    assert sharing.directories() == []
