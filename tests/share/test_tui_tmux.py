"""A share of a real tmux client, attached through a pseudo-terminal and driven by keystrokes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.command import run
from support.processes import is_alive
from support.tui_share import ask, select_request
from support.tui_tmux import PREFIX
from support.waiting import PATIENCE_S, until

from termsprawlctl.base.tmux import version


def test_the_view_is_the_clients_session_and_selecting_switches_exactly_that_client(tmux, client, start, ids):
    other = tmux.attach("one")
    share = start("--client", client.name)
    assert share.context()["route"] == "session"
    assert share.quiet_context()["sessionId"] == ids()["one"]
    answer = share.select(ids()["two"])
    assert answer["status"] == "applied"
    assert answer["context"]["sessionId"] == ids()["two"]
    assert (tmux.session_of(client), tmux.session_of(other)) == ("two", "one")


def test_the_context_of_an_applied_answer_is_fresh_for_the_next_selection(tmux, client, start, ids):
    """The events of one's own move are not taken for moves of somebody else."""
    share = start()
    context, names = share.quiet_context(), ids()
    for name in ["two", "one", "one"] * 5:
        answer = share.select(names[name], context=context)
        assert answer["status"] == "applied", answer
        context = answer["context"]
    assert share.context() == context
    assert tmux.session_of(client) == "one"


def test_a_repeated_request_gets_the_first_answer_and_switches_nothing(tmux, client, start, ids):
    share = start()
    request = select_request(share.quiet_context(), ids()["two"])
    first = ask(share.path, request)
    tmux.run("switch-client", "-c", client.name, "-t", "=one")
    assert ask(share.path, request) == first
    assert tmux.session_of(client) == "one"


def test_a_session_that_does_not_exist_is_unavailable(tmux, client, start, ids):
    share = start()
    gone = ids()["two"]
    tmux.run("kill-session", "-t", "=two")
    context = share.quiet_context()
    for session_id in (gone, "ses_nothing"):
        assert share.select(session_id, context=context) == {"status": "rejected", "code": "target_unavailable"}
    assert tmux.session_of(client) == "one"


def test_session_ids_of_another_server_start_never_meet(tmux, client, ids):
    """Every tmux counts its sessions from $0."""
    before = ids()
    server = tmux.pid()
    tmux.run("kill-server")
    until(lambda: not is_alive(server))
    tmux.new_session("one")
    assert set(ids().values()).isdisjoint(before.values())


def test_sessions_are_listed_as_json_too(ctl, tmux, ids):
    done = run([ctl, "tui", "sessions", "--json", "--socket-path", tmux.socket], tmux.env)
    assert {row["name"]: row["sessionId"] for row in json.loads(done.out)} == ids()


@pytest.mark.parametrize("moves", [b"c", b"%"], ids=["new window", "new pane"])
def test_a_context_is_stale_after_the_user_moved_on(client, start, ids, moves):
    share = start()
    seen = share.quiet_context()
    client.type(PREFIX + moves)
    share.quiet_context()
    assert share.select(ids()["two"], context=seen) == {"status": "rejected", "code": "stale_revision"}


@pytest.mark.parametrize(
    "there_and_back",
    [
        "switch-client -c CLIENT -t =two ; switch-client -c CLIENT -t =one",
        "new-window -t =one: ; last-window -t =one",
        "split-window -t =one: ; last-pane -t =one:",
    ],
    ids=["session", "window", "pane"],
)
def test_a_context_is_stale_after_a_script_moved_the_client_there_and_back(tmux, client, start, ids, there_and_back):
    """No key was pressed and nobody looked in between: only tmux's own events tell."""
    share = start()
    seen = share.quiet_context()
    tmux.run(*there_and_back.replace("CLIENT", client.name).split())
    again = share.quiet_context()
    assert again["sessionId"] == seen["sessionId"]
    assert again["revision"] > seen["revision"]
    assert share.select(ids()["two"], context=seen)["code"] == "stale_revision"


def test_the_user_is_left_alone_while_typing(tmux, client, start, ids):
    share = start()
    share.quiet_context()
    two = ids()["two"]
    client.type(b"x")
    until(lambda: share.context()["blocked"])
    assert share.select(two) == {"status": "rejected", "code": "user_active"}
    client.type(b"\r")
    share.quiet_context()
    assert share.select(ids()["two"])["status"] == "applied"


def test_a_key_is_followed_by_at_least_a_second_and_a_half_of_rest(client, start):
    """Only whole seconds can be had from tmux: whatever fraction the key came at, it has to be rounded for the user."""
    share = start()
    share.quiet_context()
    for _ in range(2):
        typed_s = time.monotonic()
        client.type(b"\r")
        until(lambda: share.context()["blocked"])
        share.quiet_context()
        assert time.monotonic() - typed_s >= 1.5


def test_keys_in_another_client_block_nothing(tmux, client, start, ids):
    other = tmux.attach("two")
    share = start("--client", client.name)
    seen = share.quiet_context()
    other.type(b"x")
    until(lambda: "x" in tmux.screen("=two:"))
    assert share.context() == seen


def test_it_stays_blocked_for_as_long_as_the_user_is_in_the_middle_of_something(tmux, client, start):
    """One client and one share each, all at the same time: the waiting is the same for all."""
    begin_and_end = {
        "prefix key": (b"", b"\x1b"),
        "copy mode": (b"[", b"q"),
        "choose-tree": (b"s", b"q"),
        "command prompt": (b":", b"\x1b"),
        "confirmation": (b"x", b"n"),
        "menu": (b"<", b"q"),
    }
    if version(tmux.run("display-message", "-p", "#{version}")) >= (3, 8):
        del begin_and_end["menu"]  # it belongs to the window there, and nothing tells that it is open
    shares = {}
    for what in begin_and_end:
        # Sessions of their own: the mode of a pane is shared by all who look at it.
        tmux.new_session(what)
        terminal = tmux.attach(what)
        shares[what] = (terminal, start("--client", terminal.name))
    for terminal, share in shares.values():
        share.quiet_context()
        assert terminal.process.poll() is None
    for what, (terminal, share) in shares.items():
        terminal.type(PREFIX + begin_and_end[what][0])
        until(lambda share=share: share.context()["blocked"], what)
    # Well after the pause that any key is followed by.
    pressed_s = max(int(second) for second in tmux.clients("#{client_activity}"))
    until(lambda: time.time() > pressed_s + 3)
    refused = {what: share.select("ses_any").get("code") for what, (_, share) in shares.items()}
    assert refused == dict.fromkeys(shares, "user_active")
    for what, (terminal, _) in shares.items():
        terminal.type(begin_and_end[what][1])
    for _, share in shares.values():
        share.quiet_context()


def test_a_popup_blocks_until_it_is_closed(tmux, client, start):
    share = start()
    share.quiet_context()
    # The command ends with its popup.
    argv = ["tmux", "-S", tmux.socket, "display-popup", "-c", client.name, "-E", "sleep 60"]
    with subprocess.Popen(argv, env=tmux.env, stdin=subprocess.DEVNULL):
        until(lambda: share.context()["blocked"])
        tmux.run("display-popup", "-c", client.name, "-C")
    share.quiet_context()


def test_what_was_typed_into_a_prompt_is_followed_by_a_rest_too(tmux, client, start):
    share = start()
    share.quiet_context()
    client.type(PREFIX + b",")
    until(lambda: share.context()["blocked"], "the prompt blocks")
    pressed_s = max(int(second) for second in tmux.clients("#{client_activity}"))
    until(lambda: time.time() > pressed_s + 3)
    assert share.context()["blocked"], "by the prompt, and by no key any more"
    client.type(b"x\r")
    until(lambda: tmux.run("display-message", "-p", "-t", "=one:", "#{window_name}").endswith("x"))
    assert share.context()["blocked"]
    assert not share.quiet_context()["blocked"]


def test_asking_for_prompts_and_menus_shows_nothing_to_the_user(tmux, client, start):
    """The questions are made to be refused; a refusal must not appear anywhere."""
    tmux.run("set-option", "-g", "status", "off")  # its clock is drawn anew with every minute
    share = start()
    share.quiet_context()
    before = client.output
    for _ in range(20):
        share.context()
    assert client.output == before
    assert tmux.run("list-buffers", check=False) == ""


def test_a_suspended_client_is_not_ready(tmux, client, start, ids):
    share = start()
    share.quiet_context()
    tmux.run("suspend-client", "-t", client.name)
    until(lambda: not share.context()["ready"])
    assert share.select(ids()["two"]) == {"status": "rejected", "code": "not_ready"}
    client.process.send_signal(signal.SIGCONT)
    until(lambda: share.context()["ready"])


def test_a_share_changes_no_window_size_and_leaves_every_option_as_it_was(tmux, client, start):
    bigger = tmux.attach("one", rows=40, columns=140)
    bigger.type(b"\r")
    until(lambda: tmux.run("display-message", "-p", "-t", "=one:", "#{window_width}") == "140")
    options = [tmux.run("show-options", *scope) for scope in (["-g"], ["-s"], ["-gw"], ["-t", "=one:"])]
    hooks = tmux.run("show-hooks", "-g")
    share = start("--client", client.name)
    share.quiet_context()
    assert tmux.run("display-message", "-p", "-t", "=one:", "#{window_width}") == "140"
    share.stop()
    assert [tmux.run("show-options", *scope) for scope in (["-g"], ["-s"], ["-gw"], ["-t", "=one:"])] == options
    assert tmux.run("show-hooks", "-g") == hooks
    assert tmux.run("display-message", "-p", "-t", "=one:", "#{window_width}") == "140"


def test_a_share_leaves_every_session_the_environment_that_it_had(tmux, client, start):
    for name in ("one", "two"):
        tmux.run("set-environment", "-t", f"={name}", "SSH_AUTH_SOCK", f"/agent/{name}")
    share = start()
    tmux.run("switch-client", "-E", "-c", client.name, "-t", "=two")
    share.quiet_context()
    share.stop()
    for name in ("one", "two"):
        assert f"SSH_AUTH_SOCK=/agent/{name}" in tmux.run("show-environment", "-t", f"={name}").splitlines()


def test_a_share_is_no_client_and_keeps_no_session_in_use(tmux, client, start, ids):
    share = start()
    share.quiet_context()
    assert tmux.clients() == [client.name]
    share.select(ids()["two"])
    assert tmux.run("display-message", "-p", "-t", "=one:", "#{session_attached}") == "0"
    assert tmux.session_of(client) == "two"
    assert tmux.clients() == [client.name]


def test_hooks_of_the_users_fire_for_people_and_not_for_a_share(tmux, client, start, ids):
    tmux.run("set-option", "-g", "@seen", "")
    for hook in ("client-attached", "client-session-changed", "client-detached", "session-created"):
        tmux.run("set-hook", "-g", hook, f"set-option -ag @seen '{hook} '")
    share = start()
    share.quiet_context()
    assert tmux.run("show-options", "-gv", "@seen") == ""
    assert share.select(ids()["two"])["status"] == "applied"
    share.stop()
    assert tmux.run("show-options", "-gv", "@seen").split() == ["client-session-changed"], "the switch itself"


def test_idle_it_needs_no_time_at_all(client, start):
    share = start()
    share.quiet_context()

    def spent() -> int:
        fields = Path(f"/proc/{share.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])

    if not os.path.exists("/proc/self/stat"):
        pytest.skip("needs /proc")
    before = spent()
    time.sleep(1.5)  # what is measured is the time itself
    assert spent() - before <= 1, "1% of a core"


def test_two_shares_at_once_never_mix(tmux, client, start, ids):
    other = tmux.attach("one")
    first, second = start("--client", client.name), start("--client", other.name)
    assert first.members["instanceId"] != second.members["instanceId"]
    context = first.quiet_context()
    second.quiet_context()
    assert ask(second.path, select_request(context, ids()["two"]))["code"] == "stale_target"
    assert ask(second.path, {"operation": "get_view_context"}, token=first.members["token"])["code"] == "unauthorized"
    assert first.select(ids()["two"])["status"] == "applied"
    assert (tmux.session_of(client), tmux.session_of(other)) == ("two", "one")
    first.stop()
    assert second.context()["ready"]


def test_with_two_clients_and_none_named_it_lists_them_and_shares_nothing(ctl, tmux, client):
    other = tmux.attach("two")
    done = run([ctl, "tui", "share", "--socket-path", tmux.socket], tmux.env)
    assert done.status == 2
    assert done.out == b""
    assert client.name.encode() in done.err
    assert other.name.encode() in done.err
    assert done.err.count(b"\n") == 1


def test_without_a_client_without_a_server_and_with_a_wrong_name_it_says_so(ctl, tmux):
    share = [ctl, "tui", "share"]
    tmux.run("detach-client", "-s", "=one")
    tmux.first.process.wait(PATIENCE_S)
    for argv in (
        [*share, "--socket-path", tmux.socket],
        [*share, "--socket-path", tmux.socket, "--client", "/dev/pts/none"],
        [*share, "--socket-path", tmux.socket + ".none"],
        [*share, "--server-name", "none"],
        [*share, "--socket-path", "a", "--server-name", "b"],
        [ctl, "tui", "sessions", "--socket-path", tmux.socket + ".none"],
    ):
        done = run(argv, tmux.env)
        assert (done.status, done.out) == (2, b""), argv
        assert done.err
    assert [name for name in os.listdir(tmux.env["TMPDIR"]) if name.startswith("termsprawl-tui")] == []


def test_without_tmux_it_says_so(ctl, tmp_path, hermetic_env):
    # An empty directory: that of Python may well have a tmux in it, too.
    env = {"PATH": str(tmp_path), "TMPDIR": str(tmp_path)}
    done = run([sys.executable, "-ISB", ctl, "tui", "share"], env)
    assert done.status == 2
    assert b"tmux is not installed" in done.err


def test_a_long_tmpdir_is_refused_and_a_shorter_one_named_as_the_remedy(ctl, tmux, client, tmp_path):
    folder = tmp_path / ("x" * 80)
    folder.mkdir()
    done = run([ctl, "tui", "share", "--socket-path", tmux.socket], {**tmux.env, "TMPDIR": str(folder)})
    assert done.status == 2
    assert b"TMPDIR" in done.err
    assert list(folder.iterdir()) == []


def test_a_stuck_tmux_is_reported_as_disconnected_and_recovers(tmux, client, start, ids):
    share = start()
    before = share.quiet_context()
    server = tmux.pid()
    os.kill(server, signal.SIGSTOP)
    try:
        seen = share.context()
        assert (seen["ready"], seen["blocked"]) == (False, True)
        assert share.select(before["sessionId"], context=seen)["code"] == "not_ready"
    finally:
        os.kill(server, signal.SIGCONT)
    assert share.quiet_context()["ready"]
    assert share.select(ids()["two"])["status"] == "applied"


def test_context_and_select_from_a_shell(ctl, tmux, client, start, ids):
    share = start()
    share.quiet_context()
    done = run([ctl, "tui", "context", "--endpoint", share.path], tmux.env)
    assert done.status == 0
    assert json.loads(done.out)["context"]["sessionId"] == ids()["one"]
    done = run([ctl, "tui", "select", ids()["two"], "--endpoint", share.path], tmux.env)
    answer = json.loads(done.out)
    assert (done.status, answer["status"]) == (0, "applied")
    assert answer["requestId"].encode() in done.err
    assert tmux.session_of(client) == "two"
    done = run([ctl, "tui", "select", "ses_nothing", "--endpoint", share.path], tmux.env)
    assert (done.status, json.loads(done.out)["code"]) == (1, "target_unavailable")
    for argv in (["select", "two", "--endpoint", share.path], ["context", "--endpoint", share.path + "x"], ["context"]):
        done = run([ctl, "tui", *argv], tmux.env)
        assert (done.status, done.out) == (2, b"")


def test_each_request_is_shown_as_it_comes(client, start, ids):
    share = start()
    revision = share.quiet_context()["revision"]
    share.select(ids()["two"], context={**share.members, "revision": revision + 7})
    expected = f"select_session {ids()['two']} from revision {revision + 7}: rejected, stale_revision\n"
    until(lambda: expected in share.out)
    assert any(line.startswith(f"get_view_context: context, revision {revision}, ses_") for line in share.out)
