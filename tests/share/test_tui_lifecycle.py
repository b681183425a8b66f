"""How a share ends, and what it leaves: nothing, except after SIGKILL."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import run
from support.processes import is_alive
from support.tui_endpoint import CONTEXT, TOKEN, FakeEndpoint, line
from support.tui_share import RunningShare, ask, dial, one_line, select_request
from support.tui_tmux import Terminal
from support.waiting import PATIENCE_S, until

GET = {"operation": "get_view_context"}


@pytest.fixture
def argv(ctl, tmux):
    return [ctl, "tui", "share", "--socket-path", tmux.socket]


@pytest.fixture
def share(argv, tmux):
    running = RunningShare(argv, tmux.env)
    yield running
    running.stop(signal.SIGKILL)


def directories(tmux) -> list[str]:
    return [name for name in os.listdir(tmux.env["TMPDIR"]) if name.startswith("termsprawl-tui-")]


def assert_over(share, tmux, reason: str) -> None:
    assert share.ended() == 0
    assert share.out[-1] == f"TUIMCP off: {reason}\n"
    assert directories(tmux) == []
    assert share.process.poll() == 0


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (signal.SIGTERM, "revoked (SIGTERM)"),
        (signal.SIGHUP, "revoked (SIGHUP)"),
        (signal.SIGINT, "revoked (Ctrl-C)"),
    ],
)
def test_a_signal_ends_it_cleanly_and_the_client_stays_as_it_is(share, tmux, number, reason):
    waiting = dial(share.path)
    share.process.send_signal(number)
    assert_over(share, tmux, reason)
    assert one_line(waiting) == {"status": "rejected", "code": "revoked"}
    waiting.close()
    assert tmux.clients() == [tmux.first.name], "nobody else is attached"
    assert tmux.session_of(tmux.first) == "one"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_while_it_starts_leaves_nothing_behind(argv, tmux, number):
    for _ in range(4):  # the moment is short, and missed now and then
        process = subprocess.Popen(
            argv, env=tmux.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        end = time.monotonic() + PATIENCE_S
        while not directories(tmux):  # without a pause
            assert time.monotonic() < end
        process.send_signal(number)
        process.wait(PATIENCE_S)
        assert directories(tmux) == []


def test_revoke_ends_a_share_that_is_suspended(ctl, share, tmux):
    share.process.send_signal(signal.SIGSTOP)
    done = run([ctl, "tui", "revoke", share.path], tmux.env)
    assert (done.status, done.out, done.err) == (0, b"revoked\n", b"")
    assert_over(share, tmux, "revoked (tui revoke)")


def test_r_revokes_after_a_pause_too(argv, tmux):
    # A shell with job control of its own: it takes the terminal back, and sets it to lines.
    shell = Terminal(["bash", "--norc", "-i"], tmux.env)
    shell.type(f"{' '.join(argv)}\r".encode())
    until(lambda: b"To revoke: " in shell.output)
    shell.type(b"\x1a")
    until(lambda: b"Stopped" in shell.output)
    shell.type(b"echo r-$((40+2))\r")
    until(lambda: b"r-42" in shell.output)
    assert len(directories(tmux)) == 1
    pid = open_children(shell.process.pid)[0]
    shell.type(b"fg\r")
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T", "it runs again")
    # No line end: in a terminal that is set to lines none of these would arrive.
    until(lambda: shell.type(b"r") or b"TUIMCP off: revoked (r)" in shell.output)
    shell.close()


def test_two_signals_at_once_do_no_harm(share, tmux):
    share.process.send_signal(signal.SIGTERM)
    share.process.send_signal(signal.SIGINT)
    share.ended()
    assert directories(tmux) == []


def test_it_ends_when_the_client_detaches(share, tmux):
    tmux.run("detach-client", "-t", tmux.first.name)
    assert_over(share, tmux, "the client has been detached")


def test_it_ends_when_the_clients_terminal_is_closed(share, tmux):
    tmux.first.close()
    assert_over(share, tmux, "the client has been detached")


def test_it_ends_when_the_clients_session_is_killed(share, tmux):
    tmux.run("kill-session", "-t", "=one")
    assert_over(share, tmux, "the client has been detached")


def test_it_goes_on_when_the_client_survives_its_session(share, tmux):
    tmux.run("set-option", "-g", "detach-on-destroy", "off")
    tmux.run("kill-session", "-t", "=one")
    until(lambda: tmux.session_of(tmux.first) == "two")
    assert share.context()["ready"]


def test_another_client_in_the_same_terminal_is_not_the_one_that_was_shared(share, tmux):
    """Terminal names are used again; a share is not."""
    tmux.run("detach-client", "-t", tmux.first.name)
    again = Terminal(["tmux", "-u", "-S", tmux.socket, "attach-session", "-t", "=one"], tmux.env)
    assert_over(share, tmux, "the client has been detached")
    again.close()


def test_it_ends_when_the_tmux_server_ends(share, tmux):
    tmux.run("kill-server")
    assert share.ended() == 0
    assert directories(tmux) == []


def test_it_ends_when_the_tmux_server_is_killed(share, tmux):
    os.kill(tmux.pid(), signal.SIGKILL)
    assert_over(share, tmux, "tmux has ended")


def test_it_can_be_revoked_while_tmux_does_not_answer(share, tmux):
    server = tmux.pid()
    os.kill(server, signal.SIGSTOP)
    try:
        share.process.send_signal(signal.SIGTERM)
        assert_over(share, tmux, "revoked (SIGTERM)")
    finally:
        os.kill(server, signal.SIGCONT)


def test_what_sigkill_leaves_is_inert_and_leads_nobody_to_a_new_share(ctl, argv, share, tmux):
    share.stop(signal.SIGKILL)
    with pytest.raises(ConnectionRefusedError):
        dial(share.path)
    done = run([ctl, "tui", "context", "--endpoint", share.path], tmux.env)
    assert done.status == 1
    assert b"target_unavailable" in done.out
    new = RunningShare(argv, tmux.env)
    assert directories(tmux) == [os.path.basename(os.path.dirname(new.path))], "a new share clears it away"
    assert ask(new.path, GET, token=share.members["token"])["code"] == "unauthorized"
    assert ask(new.path, GET)["status"] == "context"
    new.stop()
    assert directories(tmux) == []


def test_revoke_clears_away_what_sigkill_left_and_a_share_that_lives_is_no_leftover(ctl, argv, share, tmux):
    other = RunningShare(argv, tmux.env)
    other.stop(signal.SIGKILL)
    done = run([ctl, "tui", "revoke", other.path], tmux.env)
    assert (done.status, done.out) == (0, b"nobody was sharing there any more; its directory is removed\n")
    assert directories(tmux) == [os.path.basename(os.path.dirname(share.path))]
    assert ask(share.path, GET)["status"] == "context"


def test_nothing_runs_beside_it_and_nothing_outlives_it(share, tmux):
    share.context()
    children = [int(pid) for pid in open_children(share.process.pid)]
    share.stop()
    until(lambda: not any(map(is_alive, children)), "a command for tmux that was under way has ended")
    assert tmux.clients() == [tmux.first.name]


def open_children(pid: int) -> list[str]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as children:
            return children.read().split()
    except FileNotFoundError:
        pytest.skip("needs /proc")


def test_a_reader_that_does_not_read_holds_nothing_up(argv, tmux):
    reader, writer = os.pipe()
    process = subprocess.Popen(argv, env=tmux.env, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
    path = os.read(reader, 4096).decode().split("  [Revoke]")[0][len("TUIMCP on: ") :]
    fill(writer)
    for _ in range(3):
        assert ask(path, GET)["status"] == "context"
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    os.close(reader)
    os.close(writer)


def test_no_request_however_long_holds_it_up_where_nobody_reads(argv, tmux):
    reader, writer = os.pipe()
    process = subprocess.Popen(argv, env=tmux.env, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
    path = os.read(reader, 4096).decode().split("  [Revoke]")[0][len("TUIMCP on: ") :]
    context = ask(path, GET)["context"]
    fill(writer)
    os.read(reader, 8192)  # room for a line, but not for a frame
    assert ask(path, select_request(context, "ses_" + "a" * 15_000))["status"] == "rejected"
    process.terminate()
    assert process.wait(PATIENCE_S) == 0
    os.close(reader)
    os.close(writer)


def fill(writer: int) -> None:
    """Write until the pipe takes no more."""
    os.set_blocking(writer, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x" * 512)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writer, b"x")
    # Both ends of a pipe's side share this flag: the share's own is blocking.
    os.set_blocking(writer, True)


def test_a_reader_that_went_away_ends_nothing(argv, tmux):
    reader, writer = os.pipe()
    process = subprocess.Popen(argv, env=tmux.env, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
    os.close(writer)
    path = os.read(reader, 4096).decode().split("  [Revoke]")[0][len("TUIMCP on: ") :]
    os.close(reader)
    for _ in range(3):
        assert ask(path, GET)["status"] == "context"
    process.terminate()
    assert process.wait(PATIENCE_S) == 0


def test_in_the_background_of_a_terminal_it_leaves_keys_and_screen_to_the_shell(argv, tmux):
    shell = Terminal(["/bin/sh", "-i"], tmux.env)
    command = " ".join(argv)
    shell.type(f"{command} &\r".encode())
    until(lambda: b"TUIMCP on: " in shell.output and b"To revoke: " in shell.output)
    path = shell.output.decode().split("TUIMCP on: ")[1].split()[0]
    shell.type(b"echo r-$((40+2))\r")
    until(lambda: b"r-42" in shell.output)
    before = shell.output
    assert ask(path, GET)["status"] == "context"
    shell.type(b"echo s-$((40+2))\r")
    until(lambda: b"s-42" in shell.output)
    assert b"get_view_context" not in shell.output[len(before) :]
    shell.type(b"fg\r")
    until(lambda: b"fg\r\n" in shell.output)
    shell.type(b"\x03")
    until(lambda: b"TUIMCP off: revoked (Ctrl-C)" in shell.output)
    until(lambda: directories(tmux) == [])
    shell.close()


# The built file, with a fault once the gate exists.
FAULTY = """
import os, sys
gate = sys.argv[1]
sys.path.insert(0, sys.argv[2])
del sys.argv[:2]
from termsprawlctl.cli.parser import main
from termsprawlctl.share.sharing import clients
parse_clients = clients.parse_clients

def faulty(rows):
    if os.path.exists(gate):
        raise ValueError
    return parse_clients(rows)

clients.parse_clients = faulty
sys.exit(main())
"""


def test_after_a_fault_of_its_own_nothing_is_shared_any_more(argv, tmux, tmp_path):
    gate = tmp_path / "gate"
    share = RunningShare([sys.executable, "-ISBXutf8", "-c", FAULTY, str(gate), *argv], tmux.env)
    assert share.context()["ready"]
    gate.touch()
    assert ask(share.path, GET) == {"status": "rejected", "code": "revoked"}
    assert share.ended() == 1
    assert "a fault of this program (ValueError)" in share.out[-1]
    assert directories(tmux) == []


def test_the_token_is_in_no_output_no_argument_and_no_childs_environment(share):
    token = share.members["token"].encode()
    for pid in [share.process.pid, *map(int, open_children(share.process.pid))]:
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as file:
                assert token not in file.read()


def test_revoke_leaves_another_programs_share_alone(ctl, tmp_path_factory, hermetic_env):
    fake = FakeEndpoint(tmp_path_factory.mktemp("f"))
    done = run([ctl, "tui", "revoke", fake.path], hermetic_env)
    assert done.status == 1
    assert b"belongs to another program" in done.err
    assert fake.file.exists()
    fake.close()


def test_revoke_signals_nobody_who_holds_some_other_file_of_that_name(ctl, tmp_path_factory, hermetic_env):
    fake = FakeEndpoint(tmp_path_factory.mktemp("f"), {"version": 1})
    hold = "import fcntl, sys; f = open(sys.argv[1], 'r+'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    argv = [sys.executable, "-c", hold, fake.path]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        done = run([ctl, "tui", "revoke", fake.path], hermetic_env)
        holder.communicate(b"\n")
    assert holder.returncode == 0
    assert done.status == 2
    assert b"members" in done.err
    fake.close()


@pytest.mark.parametrize(
    "path", ["relative/endpoint.json", "/nowhere/endpoint.json", "/etc/passwd", "/tmp/endpoint.json"]
)
def test_revoke_refuses_what_is_no_endpoint_and_touches_nothing(ctl, hermetic_env, path):
    done = run([ctl, "tui", "revoke", path], hermetic_env)
    assert (done.status, done.out) == (2, b"")


def test_a_share_that_is_over_says_so_to_a_select_from_a_shell(ctl, tmp_path_factory, hermetic_env):
    """The frame was sent and no answer came: nobody knows, and the command says how to find out."""
    fake = FakeEndpoint(tmp_path_factory.mktemp("f"))
    fake.serve(line(CONTEXT))
    fake.serve(b"")
    done = run([ctl, "tui", "select", "ses_b", "--endpoint", fake.path], hermetic_env)
    assert done.status == 1
    assert b'"code": "timeout_unknown"' in done.out
    assert b"Look before you select again: termsprawlctl tui context --endpoint" in done.err
    assert TOKEN.encode() not in done.out + done.err
    fake.close()


def test_help_names_every_action_and_not_the_bars_own(ctl, hermetic_env):
    done = run([ctl, "tui", "--help"], hermetic_env)
    listed = done.out.split(b"options:")[0]
    for action in (b"context", b"select", b"share", b"sessions", b"revoke"):
        assert b"\n    " + action in listed
    assert b"\n    bar" not in listed
