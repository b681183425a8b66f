"""The sign in the shared client's status line: where it is seen, how it ends a share, and that nothing of it stays."""

from __future__ import annotations

import os
import re
import signal

import pytest
from support.command import run
from support.tui_share import RunningShare, ask, dial
from support.tui_tmux import PREFIX
from support.waiting import until

from termsprawlctl.base.tmux import version

GET = {"operation": "get_view_context"}
SIGN = "TUIMCP [Revoke]"
# What people have in their tmux.conf; `SEEN` is where its hooks leave their names.
HEAVY = """\
set -g mouse on
set -g base-index 1
setw -g pane-base-index 1
set -g pane-border-status top
set -g status 2
set -g status-left '#[fg=green]#S #[default]'
set -g status-right '%H:%M #{pane_title}'
set -g status-format[1] 'second line'
set -g remain-on-exit on
set -g detach-on-destroy off
set -g set-titles on
set -g prefix C-a
unbind C-b
bind C-a send-prefix
bind B display-message 'B is mine'
set-hook -g client-attached 'set -ag @seen "attached "'
set-hook -g client-detached 'set -ag @seen "detached "'
set-hook -g client-session-changed 'set -ag @seen "changed "'
set-hook -g after-split-window 'select-layout even-horizontal'
set -t two status-format[0] '#[align=left]two has its own'
set -t one status off
"""


class Everything:
    """What of a tmux a share might have changed, but for what changes by itself."""

    def __init__(self, tmux) -> None:
        sessions = tmux.run("list-sessions", "-F", "#{session_id}").split()
        scopes = [["-g"], ["-s"], ["-gw"], *(["-t", session] for session in sessions)]
        # But for what the configuration's own hooks write down.
        rows = [row for scope in scopes for row in (*scope, *tmux.run("show-options", *scope).splitlines())]
        self.options = [row for row in rows if not row.startswith("@seen ")]
        self.hooks = tmux.run("show-hooks", "-g")
        self.keys = sorted(tmux.run("list-keys").splitlines())
        # A session is given the size of a client that shows it, whoever switched that.
        sizes = "#{pane_left} #{pane_top} #{pane_width} #{pane_height}"
        panes = f"#{{session_name}} #{{window_id}} #{{pane_id}} {sizes} #{{window_zoomed_flag}}"
        self.panes = tmux.run("list-panes", "-a", "-F", panes)
        self.clients = tmux.clients()

    def __eq__(self, other: object) -> bool:
        return vars(self) == vars(other)

    __hash__ = None


@pytest.fixture(params=["plain", "heavy"])
def configured(request, tmux, client, tmp_path):
    """The user's tmux, as it comes and with a heavy configuration."""
    tmux.heavy = request.param == "heavy"
    if tmux.heavy:
        (tmp_path / "heavy.conf").write_text(HEAVY)
        tmux.run("source-file", str(tmp_path / "heavy.conf"))
    tmux.prefix = b"\x01" if tmux.heavy else PREFIX
    return tmux


def status_line(tmux, client) -> str:
    """What the client's first status line says, drawn anew."""
    begin = len(client.output)
    tmux.run("refresh-client", "-t", client.name)
    marker = tmux.run("display-message", "-p", "-c", client.name, "#{client_written}")
    assert marker
    until(lambda: len(client.output) > begin)
    return client.output[begin:].decode("utf-8", "replace")


def assert_signed(tmux, client) -> None:
    until(lambda: SIGN in status_line(tmux, client), "the sign is shown")


def click(tmux, client, column: int) -> None:
    """Press and release the left button in the first status line."""
    lines = 2 if tmux.run("show-options", "-A", "-v", "-t", tmux.session_of(client), "status") == "2" else 1
    at = f"{column + 1};{24 - lines + 1}"
    client.type(f"\033[<0;{at}M\033[<0;{at}m".encode())


def assert_over(share, tmux, before, reason: str) -> None:
    assert share.ended() == 0
    assert share.out[-1] == f"TUIMCP off: {reason}\n"
    assert not os.path.exists(share.folder)
    assert Everything(tmux) == before


def test_the_sign_is_in_every_window_and_session_zoomed_or_not_and_in_no_other_client(configured, client, start, ids):
    other = configured.attach("two")
    before = Everything(configured)
    share = start("--client", client.name)
    assert_signed(configured, client)
    assert SIGN not in status_line(configured, other)
    for command in (
        "new-window -t =one:",
        "split-window -t =one:",
        "resize-pane -Z -t =one:",
    ):
        configured.run(*command.split())
        assert_signed(configured, client)
    configured.new_session("three")
    for name in ("two", "three", "one"):
        configured.run("switch-client", "-c", client.name, "-t", f"={name}")
        assert_signed(configured, client)
    configured.run("kill-session", "-t", "=three")
    configured.run("kill-window", "-t", "=one:")
    share.stop()
    assert Everything(configured).options == before.options
    assert SIGN not in status_line(configured, client)


@pytest.mark.parametrize("name", ["one", "two"])
def test_a_click_on_revoke_revokes_where_the_mouse_is_on(configured, client, start, name):
    configured.run("set-option", "-g", "mouse", "on")
    configured.run("switch-client", "-c", client.name, "-t", f"={name}")
    before = Everything(configured)
    share = start()
    assert_signed(configured, client)
    click(configured, client, 10)
    assert_over(share, configured, before, "revoked (a click on [Revoke])")


def test_a_click_beside_it_does_nothing(configured, client, start):
    configured.run("set-option", "-g", "mouse", "on")
    share = start()
    assert_signed(configured, client)
    click(configured, client, 60)
    client.type(b"echo clicked-$((40+2))\r")
    until(lambda: "clicked-42" in configured.screen("=one:"))
    assert ask(share.path, GET)["status"] == "context"


def test_a_key_after_the_prefix_revokes_and_another_one_goes_back(configured, client, start, ids, ctl):
    client_of_two = configured.attach("two")  # so that it has its size
    client_of_two.close()
    until(lambda: configured.clients() == [client.name])
    before = Everything(configured)
    share = start()
    share.quiet_context()
    names = ids()
    assert share.select(names["two"])["status"] == "applied"
    assert share.select(names["one"])["status"] == "applied"
    if configured.heavy:  # there B is the user's own
        assert run([ctl, "tui", "back"], configured.env).status == 0
    else:
        client.type(configured.prefix + b"B")
    until(lambda: configured.session_of(client) == "two", "back over the last switch")
    assert run([ctl, "tui", "back"], configured.env).status == 0
    until(lambda: configured.session_of(client) == "one", "back over the first one")
    client.type(configured.prefix + b"R")
    assert share.ended() == 0
    assert share.out[-1] == "TUIMCP off: revoked (a key)\n"
    assert Everything(configured) == before


def test_a_key_of_the_users_choice_is_bound_and_one_that_is_taken_refused(tmux, client, ctl):
    before = Everything(tmux)
    done = run([ctl, "tui", "share", "--socket-path", tmux.socket, "--key", "c"], tmux.env)
    assert (done.status, done.out) == (1, b"")
    assert b"the key c is bound already" in done.err
    assert Everything(tmux) == before
    share = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket, "--key", "F9"], tmux.env)
    client.type(PREFIX + b"\033[20~")
    assert_over(share, tmux, before, "revoked (a key)")


def test_a_switch_is_announced_in_the_client_and_by_the_share(configured, client, start, ids):
    share = start()
    share.quiet_context()
    assert share.select(ids()["two"])["status"] == "applied"
    until(lambda: "agent → two (from one)".encode() in client.output)
    way = "termsprawlctl tui back" if configured.heavy else "prefix B"
    expected = f"agent → two (from one) · back: {way} · revoke: prefix R\n"
    until(lambda: expected in share.out)


def test_a_name_that_tmux_would_expand_is_announced_as_it_is(tmux, client, start, ids):
    tmux.new_session("50%d #{pid} #[fg=red]")
    name = tmux.run("list-sessions", "-F", "#{session_name}").splitlines()[0]
    share = start()
    share.quiet_context()
    assert share.select(ids()[name])["status"] == "applied"
    until(lambda: f"agent → {name} (".encode() in client.output)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
@pytest.mark.parametrize("then", ["status", "share", "revoke"])
def test_whatever_ends_it_everything_is_as_it_was_after_the_next_command_at_the_latest(
    configured, client, start, ctl, number, then
):
    before = Everything(configured)
    share = start()
    assert_signed(configured, client)
    share.process.send_signal(number)
    share.ended()
    if number == signal.SIGKILL:
        assert SIGN in status_line(configured, client)
        with pytest.raises(ConnectionRefusedError):
            dial(share.path)
        words = {"status": [], "share": ["--socket-path", configured.socket + ".none"], "revoke": [share.path]}[then]
        run([ctl, "tui", then, *words], configured.env)
    assert Everything(configured) == before
    assert not os.path.exists(share.folder)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first", "second"])
def test_of_two_shares_each_has_its_sign_and_its_keys_until_it_ends(configured, client, start, order):
    other = configured.attach("two")
    before = Everything(configured)
    shares = [(client, start("--client", client.name)), (other, start("--client", other.name))]
    for terminal, _ in shares:
        assert_signed(configured, terminal)
    first, last = (shares[number] for number in order)
    first[0].type(configured.prefix + b"R")
    assert first[1].ended() == 0
    assert SIGN not in status_line(configured, first[0])
    assert_signed(configured, last[0])
    last[0].type(configured.prefix + b"R")
    assert_over(last[1], configured, before, "revoked (a key)")


def test_a_configuration_that_is_read_again_does_not_take_the_sign_away_for_good(tmux, client, start, ids):
    share = start()
    share.quiet_context()
    tmux.run("set-option", "-gu", "status-format[0]")
    assert_signed(tmux, client)
    tmux.new_session("three")
    tmux.run("set-option", "-t", "=three:", "status", "off")
    assert share.select(ids()["three"])["status"] == "applied"
    assert_signed(tmux, client)
    tmux.run("set-option", "-g", "status-right", "changed meanwhile")
    share.stop()
    assert SIGN not in tmux.run("show-options", "-g")
    assert tmux.run("show-options", "-gv", "status-right") == "changed meanwhile"


def test_no_layout_zoom_split_or_kill_of_the_users_ends_the_share(configured, client, start, ids):
    configured.run("set-option", "-g", "detach-on-destroy", "off")
    share = start()
    share.quiet_context()
    for command in (
        "split-window -t =one:",
        "select-layout -t =one: even-horizontal",
        "resize-pane -Z -t =one:",
        "new-window -t =one:",
        "kill-session -t =one",
    ):
        configured.run(*command.split())
        assert share.context()["ready"], command
    until(lambda: configured.session_of(client) == "two")
    assert_signed(configured, client)
    small = configured.attach("two", rows=10, columns=30)
    assert_signed(configured, client)
    assert small.process.poll() is None
    assert re.search("ses_", share.quiet_context()["sessionId"])


def test_with_a_great_many_sessions_it_is_shown_and_taken_away_in_all_of_them(tmux, client, start):
    for number in range(40):
        tmux.new_session(f"s{number}", "cat")
        if number % 2:
            tmux.run("set-option", "-t", f"=s{number}:", "status", "off")
        if number % 3:
            tmux.run("set-option", "-t", f"=s{number}:", "status-format[0]", f"own {number}")
    before = Everything(tmux)
    share = start()
    for number in (0, 1, 2, 3, 38, 39):
        tmux.run("switch-client", "-c", client.name, "-t", f"=s{number}")
        assert_signed(tmux, client)
    tmux.run("switch-client", "-c", client.name, "-t", "=one")
    share.stop()
    assert Everything(tmux).options == before.options


def test_a_select_that_would_end_the_session_that_is_left_is_refused_with_words(tmux, client, start, ids):
    share = start()
    share.quiet_context()
    names = ids()
    tmux.run("set-option", "-t", "=one:", "destroy-unattached", "on")
    assert share.select(names["two"]) == {"status": "rejected", "code": "not_ready"}
    assert tmux.session_of(client) == "one"
    until(lambda: "not_ready (its option destroy-unattached would end the session that is left)" in share.out[-1])
    assert share.select(names["one"])["status"] == "applied", "nothing is left by that"
    tmux.attach("one")
    assert share.select(names["two"])["status"] == "applied", "somebody else is there"


def test_the_oldest_tmux_that_is_supported_knows_all_that_is_used(tmux):
    assert version(tmux.run("display-message", "-p", "#{version}")) >= (3, 2)
