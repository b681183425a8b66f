"""What a person sets for a share, and the ways to find and end it from elsewhere."""

from __future__ import annotations

import json
import os
import signal
import stat
import time
from pathlib import Path

import pytest
from support.command import run
from support.processes import is_alive
from support.tui_share import ask, dial, frame, one_line, select_request
from support.tui_tmux import PREFIX
from support.waiting import until

from termsprawlctl.base.errors import UsageError
from termsprawlctl.share import directory, shell
from termsprawlctl.share.sharing import clients

GET = {"operation": "get_view_context"}


def last_line(share) -> str:
    share.ended()
    return share.out[-1]


@pytest.mark.parametrize("only", [["two"], ["t*"], ["no", "tw?"]], ids=" ".join)
def test_only_the_named_sessions_can_be_selected_or_are_listed(tmux, client, start, ids, only):
    names = ids()
    share = start("--only", *only)
    context = share.quiet_context()
    assert context["sessionId"] == names["one"]
    assert share.select(names["one"], context=context)["code"] == "target_unavailable"
    assert ids("--endpoint", share.path) == {"two": names["two"]}
    assert share.select(names["two"])["status"] == "applied"


def test_read_only_shows_the_view_and_selects_nothing(client, start, ids):
    share = start("--read-only")
    context = share.quiet_context()
    assert not context["ready"]
    assert share.select(ids()["two"]) == {"status": "rejected", "code": "not_ready"}


def test_it_ends_when_its_time_is_over(start):
    assert last_line(start("--for", "1s")) == "TUIMCP off: the time is over\n"


@pytest.mark.parametrize(
    ("text", "seconds"), [("45s", 45), ("10m", 600), ("1h", 3600), ("1h30m", 5400), ("2h5s", 7205), ("0h1m0s", 60)]
)
def test_a_time_span_is_hours_minutes_and_seconds(text, seconds):
    assert shell.duration_s(text) == seconds


@pytest.mark.parametrize("text", ["", "0s", "5", "1.5h", "1m1h", "-1s", "1 h", "9999999h", "\u0663s"])
def test_what_is_no_time_span_is_refused(text):
    with pytest.raises(UsageError, match="1h30m"):
        shell.duration_s(text)


@pytest.mark.parametrize("words", ["--pause 1.4", "--pause 61", "--for x", "--name ../x"])
def test_a_wrong_limit_is_a_clear_line_and_changes_nothing(ctl, tmux, client, words):
    before = tmux.run("show-options", "-g")
    done = run([ctl, "tui", "share", "--socket-path", tmux.socket, *words.split()], tmux.env)
    assert (done.status, done.out) == (2, b"")
    assert done.err.count(b"\n") == 1
    assert tmux.run("show-options", "-g") == before


def test_the_user_may_want_to_be_left_alone_for_longer(tmux, client, start):
    share = start("--pause", "4")
    share.quiet_context()
    client.type(b"\r")
    until(lambda: share.context()["blocked"])
    pressed_s = int(tmux.clients("#{client_activity}")[0])
    context = share.quiet_context()
    assert context["ready"]
    assert time.time() >= pressed_s + 4


def test_status_lists_what_is_shared_and_revoke_without_a_path_ends_it(ctl, tmux, client, start):
    nothing = run([ctl, "tui", "status"], tmux.env)
    assert (nothing.status, nothing.out) == (0, b"nothing is shared\n")
    assert run([ctl, "tui", "revoke"], tmux.env).status == 2
    share = start("--only", "two", "--for", "1h")
    told = run([ctl, "tui", "status"], tmux.env).out.decode()
    assert told == f"{share.path}, client {client.name}, for 0 min, 59 min left, only two\n"
    (row,) = json.loads(run([ctl, "tui", "status", "--json"], tmux.env).out)
    assert (row["path"], row["client"], row["pid"]) == (share.path, client.name, share.process.pid)
    assert share.members["token"] not in json.dumps(row)
    done = run([ctl, "tui", "revoke"], tmux.env)
    assert (done.status, done.out.decode()) == (0, f"revoked {share.path}\n")
    assert last_line(share) == "TUIMCP off: revoked (tui revoke)\n"


def test_of_several_shares_none_is_revoked_unnamed_and_all_with_all(ctl, tmux, client, start):
    other = tmux.attach("two")
    shares = [start("--client", client.name), start("--client", other.name)]
    done = run([ctl, "tui", "revoke"], tmux.env)
    assert done.status == 2
    for terminal, share in zip((client, other), shares):
        assert f"{share.path}, client {terminal.name}, for 0 min".encode() in done.err
        assert share.context()["ready"]
    done = run([ctl, "tui", "revoke", "--all"], tmux.env)
    assert (done.status, done.out.count(b"revoked ")) == (0, 2)
    for share in shares:
        assert last_line(share) == "TUIMCP off: revoked (tui revoke)\n"


def test_back_without_a_switch_says_so_in_the_client(ctl, tmux, client, share):
    assert run([ctl, "tui", "back"], tmux.env).status == 0
    until(lambda: b"There is no switch of the agent's to go back over." in client.output)
    assert share.context()["ready"]


def test_back_is_an_input_of_the_users(ctl, tmux, client, share, ids):
    share.quiet_context()
    seen = share.select(ids()["two"])["context"]
    assert run([ctl, "tui", "back"], tmux.env).status == 0
    until(lambda: tmux.session_of(client) == "one")
    assert share.select(ids()["two"], context=seen)["code"] == "stale_revision"


# --- in the background, and at a path that stays -------------------------------------------


def test_detached_it_prints_the_path_and_ends_with_the_client(ctl, tmux, client):
    done = run([ctl, "tui", "share", "--detach", "--socket-path", tmux.socket, "--only", "t*"], tmux.env)
    assert (done.status, done.err) == (0, b"")
    path = done.out.decode().rstrip("\n")
    assert ask(path, GET)["status"] == "context"
    (row,) = json.loads(run([ctl, "tui", "status", "--json"], tmux.env).out)
    assert (row["path"], row["only"]) == (path, ["t*"])
    tmux.run("detach-client", "-t", client.name)
    until(lambda: not os.path.exists(os.path.dirname(path)))
    until(lambda: not is_alive(row["pid"]))


def test_detached_it_says_why_it_could_not_start(ctl, tmux, client):
    tmux.attach("two")
    done = run([ctl, "tui", "share", "--detach", "--socket-path", tmux.socket], tmux.env)
    assert (done.status, done.out) == (2, b"")
    assert b"2 clients could be shared" in done.err


def test_with_a_name_the_path_stays_the_same_and_nobody_takes_over_a_share_that_lives(ctl, tmux, client, start):
    home = {"TERMSPRAWL_DATA": tmux.env["TMPDIR"] + "/d"}
    share = start("--name", "work", **home)
    assert share.path == os.path.realpath(tmux.env["TMPDIR"]) + "/d/tui/work/endpoint.json"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (share.folder, *share.folder.iterdir())}
    assert modes == {"work": 0o700, "endpoint.json": 0o600, "s": 0o600, "about.json": 0o600}
    argv = [ctl, "tui", "share", "--name", "work", "--socket-path", tmux.socket]
    done = run(argv, {**tmux.env, **home})
    assert (done.status, done.out) == (2, b"")
    assert b"a share named work is running" in done.err
    assert share.context()["ready"]
    assert share.path.encode() in run([ctl, "tui", "status"], {**tmux.env, **home}).out
    share.stop()
    assert not share.folder.exists()
    again = start("--name", "work", **home)
    assert again.path == share.path
    assert again.members["token"] != share.members["token"]
    again.stop(signal.SIGKILL)
    third = start("--name", "work", **home)
    assert third.path == share.path
    assert third.context()["ready"]
    assert tmux.run("show-options", "-gv", "status-format[0]").count("TUIMCP") == 1, "and none of the killed one's"


def test_a_name_finds_its_server_below_the_folder_that_the_user_chose(ctl, tmux, client, tmp_path):
    """As tmux -L does it, with TMUX_TMPDIR."""
    folder = Path(tmux.env["TMPDIR"], f"tmux-{os.getuid()}")
    folder.mkdir(mode=0o700)
    (folder / "mine").symlink_to(tmux.socket)
    for environment, words in (
        ({"TMUX_TMPDIR": tmux.env["TMPDIR"]}, ["--server-name", "mine"]),
        ({}, ["--server-name", "x"]),
    ):
        done = run([ctl, "tui", "sessions", *words], {**tmux.env, **environment})
        assert (done.status == 0) == bool(environment), done.err


@pytest.mark.process
@pytest.mark.parametrize(
    ("environment", "name", "path"),
    [
        ({}, None, "/tmp/tmux-{}/default"),
        ({"TMUX_TMPDIR": "/var/tmp"}, None, "/var/tmp/tmux-{}/default"),
        ({"TMUX_TMPDIR": "/var/tmp"}, "x", "/var/tmp/tmux-{}/x"),
        ({"TMUX": "/a,b,1,0"}, None, "/a,b"),
        ({"TMUX": "/a,b,1,0"}, "x", "/tmp/tmux-{}/x"),
    ],
)
def test_which_server_is_meant(environment, name, path):
    assert clients.open_server(None, name, environment).base[-1] == os.path.realpath(path.format(os.getuid()))


# --- together ------------------------------------------------------------------------------


def test_a_menu_that_was_closed_a_while_ago_blocks_nobody(tmux, client, share):
    share.quiet_context()
    client.type(PREFIX + b":")
    until(lambda: share.context()["blocked"])
    client.type(b"\x1b")
    pressed_s = int(tmux.run("display-message", "-p", "%s"))
    # Nobody asks meanwhile.
    until(lambda: int(tmux.run("display-message", "-p", "%s")) > pressed_s + 4)
    assert not share.context()["blocked"]


def test_a_question_keeps_the_agent_out_only_once_a_key_was_pressed(tmux, client, share, ids):
    two = ids()["two"]
    client.type(b"printf 'Continue? [y/n] '; read answer\r")
    until(lambda: tmux.screen("=one:").rstrip().endswith("[y/n]"))
    context = share.quiet_context()
    assert context["ready"]
    client.type(b"y")
    until(lambda: tmux.screen("=one:").rstrip().endswith("y"))
    pressed_s = int(tmux.clients("#{client_activity}")[0])
    until(lambda: int(tmux.run("display-message", "-p", "%s")) > pressed_s + 3)
    assert share.select(two)["code"] == "user_active"
    client.type(b"\r")
    share.quiet_context()
    assert share.select(two)["status"] == "applied"


def test_a_read_is_answered_during_a_select_and_a_second_select_is_busy_at_once(tmux, client, share, ids):
    names = ids()
    share.quiet_context()
    first = share.select(names["two"])  # the second of a switch has to be over before the next one
    with dial(share.path) as one, dial(share.path) as other:
        request = select_request(first["context"], names["one"])
        one.sendall(frame(share.path, request))
        other.sendall(frame(share.path, {**request, "requestId": "44444444-4444-4444-8444-444444444444"}))
        codes = {one_line(sock).get("code", "applied") for sock in (other, one)}
    assert codes <= {"applied", "busy", "stale_revision"}
    assert "applied" in codes


def test_what_another_program_left_there_is_nothing_of_ours(tmux, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("TERMSPRAWL_DATA", str(tmp_path / "d"))
    folder = tmp_path / "termsprawl-tui-0123456789ab"
    folder.mkdir(mode=0o700)
    (folder / "about.json").write_text('{"client": 1, "segment": []}')
    (folder / "mine.txt").write_text("kept")
    assert directory.living() == []
    directory.clear_dead()
    assert (folder / "mine.txt").read_text() == "kept"
