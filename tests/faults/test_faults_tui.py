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
from support import faults
from support.mcp_client import McpServer
from support.tui_share import RunningShare, ask, dial, frame, one_line
from support.tui_tmux import PATIENCE_S, eventually

GET = {"operation": "get_view_context"}
# tmux as it is, but for its AT-th call: before that comes DO, with the caller's number in $caller.
COUNTING_TMUX = """\
#!/bin/sh
count=$(cat "$COUNT" 2>/dev/null)
count=$((count + 1))
echo $count >"$COUNT"
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
        path = f"{programs}{os.pathsep}{tmux.env['PATH']}"
        self.marked = faults.Marked({**tmux.env, "PATH": path, "COUNT": str(self.count)})
        self.before = self.state()

    def state(self) -> tuple:
        """What the user would notice: clients, panes, the mouse and all other options of the session."""
        return (
            self.tmux.clients(),
            self.tmux.run("list-panes", "-a", "-F", "#{pane_id}"),
            self.tmux.run("show-options", "-t", "one"),
        )

    def move_to(self, tmux) -> None:
        """Share a client of another server."""
        self.tmux = tmux
        self.argv[-1] = tmux.socket
        self.marked.env.update(TMPDIR=tmux.env["TMPDIR"])

    def bars(self) -> list[str]:
        """The command lines of bars of shares here."""
        lines = map(faults.command_line, faults.running())
        return [line for line in lines if f" tui bar {self.tmux.env['TMPDIR']}" in line]

    def start(self, at: int, what: str, *words: str, before: tuple | list = ()) -> subprocess.Popen:
        self.count.write_text("0")
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
        return int(self.count.read_text() or 0)

    def places(self) -> list[str]:
        return [name for name in os.listdir(self.tmux.env["TMPDIR"]) if name.startswith("termsprawl-tui-")]

    def number_of_calls(self, *words: str) -> tuple[int, int]:
        """How many calls of tmux a share makes until it has started, and until it has ended."""
        share = RunningShare([*self.argv, *words], {**self.marked.env, "AT": "0", "DO": ""})
        started = self.calls()
        share.stop()
        return started, self.calls()

    def end_at(self, at: int, started: int, number: int, *words: str) -> None:
        """Start a share that gets a signal when it makes this call, and see it end."""
        process = self.start(at, f"kill -{number:d} $caller", *words)
        eventually(lambda: process.poll() is not None or self.calls() >= min(at, started))
        if at > started:
            process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_S)
        process.stderr.close()

    def assert_gone(self, told: str) -> None:
        self.marked.assert_gone()
        faults.until(lambda: self.state() == self.before, lambda: f"{told}: {self.state()} instead of {self.before}")

    def assert_works(self, *words: str) -> None:
        share = RunningShare([*self.argv, *words], self.tmux.env)
        assert ask(share.path, GET)["status"] == "context"
        assert len(self.places()) == 1
        share.stop()
        assert self.places() == []
        faults.until(lambda: self.state() == self.before, lambda: f"{self.state()} instead of {self.before}")


@pytest.fixture
def sharing(ctl, tmux, tmp_path):
    made = Sharing(ctl, tmux, tmp_path)
    yield made
    made.marked.end()


@pytest.mark.parametrize(
    ("number", "words"), [(signal.SIGKILL, ()), (signal.SIGKILL, ("--bar",)), (signal.SIGTERM, ("--bar",))]
)
def test_ended_at_whichever_call_of_tmux_a_share_leaves_the_users_tmux_as_it_was(sharing, number, words):
    started, _ = sharing.number_of_calls(*words)
    # The first of those at its end, too, and the one that a bar makes then.
    for at in range(1, started + 3):
        sharing.end_at(at, started, number, *words)
        sharing.assert_gone(f"call {at}")
        assert len(sharing.places()) <= (number == signal.SIGKILL), at
    sharing.assert_works(*words)


def test_a_tmux_that_is_killed_at_whichever_call_ends_the_share_and_leaves_nothing(sharing, prepared):
    started, _ = sharing.number_of_calls("--bar")
    for at in range(2, started + 1):  # the first only asks for the version
        other = prepared.take()
        sharing.move_to(other)
        process = sharing.start(at, f"kill -9 {other.pid()}", "--bar")
        _, said = process.communicate(timeout=PATIENCE_S)
        assert b"Traceback" not in said, at
        assert b"internal error" not in said, at
        sharing.marked.assert_gone()
        faults.until(lambda: not sharing.bars(), f"the bar's end, {at}")
        assert sharing.places() == [], at


@pytest.mark.parametrize("number", [signal.SIGSTOP, signal.SIGKILL])
def test_a_bar_that_cannot_end_by_itself_is_taken_away_and_the_mouse_put_back(sharing, number):
    share = RunningShare([*sharing.argv, "--bar"], {**sharing.marked.env, "AT": "0", "DO": ""})
    pane = sharing.tmux.run("list-panes", "-t", "=one:", "-F", "#{@termsprawlctl-bar} #{pane_pid}").splitlines()[-1]
    assert pane.startswith("on ")
    os.kill(int(pane.split()[1]), number)
    if number == signal.SIGSTOP:
        share.process.send_signal(signal.SIGTERM)
    assert share.ended() == 0
    sharing.assert_gone("the bar")
    faults.until(lambda: not sharing.bars(), "the end of the bar's process")
    assert sharing.places() == []


def test_a_share_can_be_revoked_while_tmux_does_not_answer_to_the_making_of_a_bar(sharing):
    started, _ = sharing.number_of_calls("--bar")
    server = sharing.tmux.pid()
    process = sharing.start(started, f"kill -STOP {server}", "--bar")
    try:
        faults.until(lambda: faults.state(server) == "T", "the call for the bar")
        assert len(sharing.places()) == 1
        process.send_signal(signal.SIGTERM)
        faults.until(lambda: not sharing.places(), "the revocation", patience_s=5)  # the call waits for 10
        assert process.poll() is None
    finally:
        os.kill(server, signal.SIGCONT)
    assert process.wait(PATIENCE_S) == 0
    process.stderr.close()
    sharing.assert_gone("the bar")
    sharing.assert_works("--bar")


DAMAGES = {
    "the endpoint is removed": lambda folder: (folder / "endpoint.json").unlink(),
    "the endpoint is replaced": lambda folder: (
        (folder / "new").write_text("{}") and (folder / "new").rename(folder / "endpoint.json")
    ),
    "the socket is removed": lambda folder: (folder / "s").unlink(),
    "the directory is removed": shutil.rmtree,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("words", [(), ("--bar",)], ids=["without a bar", "with a bar"])
def test_a_share_whose_files_are_taken_away_can_still_be_ended(ctl, sharing, damage, words):
    share = RunningShare([*sharing.argv, *words], {**sharing.marked.env, "AT": "0", "DO": ""})
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
    assert sharing.places() == []
    sharing.assert_works(*words)


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
        assert sharing.places() == [], call
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
    assert sharing.places() == []


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
    assert sharing.places() == []
