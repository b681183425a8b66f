"""The bar inside tmux: shown with the share, gone with it, and four ways to revoke."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.command import run
from support.tui_share import RunningShare, ask, dial
from support.tui_tmux import PREFIX, eventually

from termsprawlctl.share import bar

GET = {"operation": "get_view_context"}
SCOPES = (["-g"], ["-s"], ["-gw"], ["-t", "=one:"], ["-w", "-t", "=one:"], ["-p", "-t", "=one:"])


class Bar:
    """A share with a bar, started by typing the command into the client's own pane."""

    def __init__(self, tmux, client, ctl: str) -> None:
        self.tmux = tmux
        self.client = client
        self.options = self.current_options()
        self.user_pane = tmux.run("display-message", "-p", "-t", "=one:", "#{pane_id}")
        client.type(f"{ctl} tui share --bar\r".encode())
        self.pane = eventually(self.find, "the bar is shown")
        self.line = eventually(lambda: re.search(r"TUIMCP on: (\S+)  \[Revoke\]", tmux.screen(self.pane)))
        self.path = self.line.group(1)
        eventually(lambda: self.share_pid() is not None)

    def current_options(self) -> list[str]:
        return [self.tmux.run("show-options", *scope) for scope in SCOPES]

    def find(self) -> str | None:
        """The id of the pane that shows the bar."""
        rows = self.tmux.run("list-panes", "-t", "=one:", "-F", "#{pane_id} #{pane_start_command}").splitlines()
        return next((row.split()[0] for row in rows if " bar " in row), None)

    def share_pid(self) -> int | None:
        """The sharing process, a child of the user's shell."""
        shell = self.tmux.run("display-message", "-p", "-t", self.user_pane, "#{pane_pid}")
        children = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
        return int(children[0]) if children else None

    def click(self, column: int) -> None:
        """Press and release the left button in the bar; column 0 is the line's first."""
        _, top = map(int, self.tmux.run("display-message", "-p", "-t", self.pane, "#{pane_left} #{pane_top}").split())
        at = f"{column + 1};{top + 1}"
        self.client.type(f"\033[<0;{at}M\033[<0;{at}m".encode())

    def assert_gone(self) -> None:
        eventually(lambda: not os.path.exists(self.path), "the endpoint is removed")
        eventually(lambda: self.find() is None, "the bar is gone")
        eventually(lambda: self.current_options() == self.options, "the options are as they were")
        eventually(lambda: self.share_pid() is None, "the process has ended")
        assert not os.path.exists(os.path.dirname(self.path))


@pytest.fixture
def shared(tmux, client, ctl):
    return Bar(tmux, client, ctl)


def test_the_bar_is_one_line_across_the_bottom_and_leaves_the_user_where_they_were(tmux, shared):
    geometry = "#{pane_height} #{pane_left} #{pane_at_bottom} #{pane_width} #{window_width} #{pane_active}"
    height, left, bottom, width, window_width, active = tmux.run(
        "display-message", "-p", "-t", shared.pane, geometry
    ).split()
    assert (height, left, bottom, width, active) == ("1", "0", "1", window_width, "0")
    assert Path(shared.path).is_file()
    assert ask(shared.path, GET)["context"]["ready"]
    assert "TUIMCP on: " in tmux.screen(shared.user_pane), "the foreground process shows the same line"
    token = json.loads(Path(shared.path).read_text())["token"]
    assert token not in shared.client.output.decode("utf-8", "replace")


@pytest.mark.parametrize("mouse", ["off", "on", "own on", "own off"])
def test_a_click_on_revoke_revokes_whatever_the_mouse_option_was(tmux, client, ctl, mouse):
    scope = ["-t", "=one:"] if mouse.startswith("own") else ["-g"]
    tmux.run("set-option", *scope, "mouse", mouse.split()[-1])
    shared = Bar(tmux, client, ctl)
    inside = shared.line.start(0) + shared.line.group(0).index("[Revoke]")
    shared.click(inside - 2)
    assert ask(shared.path, GET)["status"] == "context", "a click beside it does nothing"
    shared.click(inside + len("[Revoke]"))
    assert ask(shared.path, GET)["status"] == "context"
    shared.click(inside)
    shared.assert_gone()


@pytest.mark.parametrize("key", [b"r", b"\x03"], ids=["r", "Ctrl-C"])
def test_a_key_in_the_bar_revokes(tmux, client, shared, key):
    tmux.run("select-pane", "-t", shared.pane)
    client.type(b"x\033[A")
    assert ask(shared.path, GET)["status"] == "context", "other keys do nothing"
    client.type(key)
    shared.assert_gone()


@pytest.mark.parametrize("key", [b"r", b"\x03"], ids=["r", "Ctrl-C"])
def test_a_key_in_the_sharing_process_revokes(client, shared, key):
    client.type(key)
    shared.assert_gone()
    # The terminal is the shell's again, as it was.
    client.type(b"echo a-$((40+2))\r")
    eventually(lambda: "a-42" in shared.tmux.screen(shared.user_pane))


def test_the_command_revokes_from_anywhere(ctl, tmux, shared):
    waiting = dial(shared.path)
    done = run([ctl, "tui", "revoke", shared.path], tmux.env)
    assert (done.status, done.out, done.err) == (0, b"revoked\n", b"")
    assert not os.path.exists(shared.path)
    waiting.close()
    shared.assert_gone()
    done = run([ctl, "tui", "revoke", shared.path], tmux.env)
    assert done.status == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_the_bar_goes_away_with_the_share_whatever_ends_it(ctl, tmux, shared, number):
    os.kill(shared.share_pid(), number)
    if number == signal.SIGKILL:
        eventually(lambda: shared.find() is None, "the bar is gone")
        eventually(lambda: shared.current_options() == shared.options)
        assert os.path.exists(shared.path), "what a killed process leaves is inert"
        with pytest.raises(ConnectionRefusedError):
            dial(shared.path)
        done = run([ctl, "tui", "revoke", shared.path], tmux.env)
        assert (done.status, done.out) == (0, b"nobody was sharing there any more; its directory is removed\n")
    shared.assert_gone()


@pytest.mark.parametrize("how", ["kill-pane", "SIGKILL"])
def test_without_its_bar_a_share_does_not_go_on_unseen(tmux, shared, how):
    if how == "kill-pane":
        tmux.run("kill-pane", "-t", shared.pane)
    else:
        os.kill(int(tmux.run("display-message", "-p", "-t", shared.pane, "#{pane_pid}")), signal.SIGKILL)
    shared.assert_gone()


def test_a_bar_whose_pane_is_gone_before_it_has_begun_revokes(tmux, client, ctl):
    share = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket], tmux.env)
    words = ["--socket-path", tmux.socket, "--in-session", "=one:", "--mouse-was", "on"]
    done = run([ctl, "tui", "bar", share.path, *words], tmux.env)
    assert (done.status, done.out, done.err) == (0, b"", b"")
    assert share.ended() == 0


@pytest.mark.parametrize("was", ["", "off"], ids=["not set", "off"])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["first", "second"])
def test_of_two_bars_in_one_session_each_can_be_clicked_until_it_ends(tmux, ctl, order, was):
    if was:
        tmux.run("set-option", "-t", "=one:", "mouse", was)
    before = tmux.run("show-options", "-t", "=one:")
    shares = [RunningShare([ctl, "tui", "share", "--bar", "--socket-path", tmux.socket], tmux.env) for _ in range(2)]
    shares[order[0]].stop()
    assert tmux.run("show-options", "-v", "-t", "=one:", "mouse") == "on"
    shares[order[1]].stop()
    assert tmux.run("show-options", "-t", "=one:") == before


def test_the_bar_holds_no_window_open_that_the_user_has_left(tmux, client, ctl):
    tmux.run("new-window", "-d", "-t", "=one:")
    share = RunningShare([ctl, "tui", "share", "--bar", "--socket-path", tmux.socket], tmux.env)
    client.type(b"exit\r")
    eventually(lambda: tmux.run("list-windows", "-t", "=one", "-F", "#{window_index}") == "1", "the window has closed")
    assert share.ended() == 0
    assert tmux.run("show-options", "-t", "=one:", "mouse") == ""
    assert tmux.session_of(client) == "one"


def test_the_bar_stays_one_line_when_the_window_is_resized(tmux, client, shared):
    tmux.run("resize-window", "-t", "=one:", "-x", "60", "-y", "50")
    height = lambda: tmux.run("display-message", "-p", "-t", shared.pane, "#{pane_height}")  # noqa: E731
    eventually(lambda: height() == "1")
    eventually(lambda: tmux.screen(shared.pane).rstrip().endswith("…  [Revoke]"), "the path is cut, [Revoke] is not")


def test_started_inside_tmux_it_shares_the_client_that_it_runs_in(tmux, client, ctl):
    """Others are attached, to the same server and to the same session."""
    tmux.attach("two")
    client.type(PREFIX + b"c")
    eventually(lambda: tmux.run("list-windows", "-t", "=one", "-F", "x").count("x") == 2)
    tmux.run("new-session", "-d", "-s", "three", "-t", "one")
    third = tmux.attach("three")
    third.type(PREFIX + b"0")
    eventually(lambda: tmux.run("display-message", "-p", "-t", "=three:", "#{window_index}") == "0")
    client.type(f"{ctl} tui share\r".encode())
    eventually(lambda: f"Sharing the tmux client {client.name}:" in tmux.screen("=one:"))


def test_a_window_without_room_for_the_bar_ends_it_with_a_reason(tmux, client, ctl):
    tmux.run("resize-window", "-t", "=one:", "-x", "80", "-y", "2")
    argv = [ctl, "tui", "share", "--bar", "--socket-path", tmux.socket]
    done = run(argv, tmux.env)
    assert done.status == 1
    assert b"no room for the bar" in done.err
    assert tmux.run("show-options", "-t", "=one:", "mouse") == ""


@given(st.integers(8, 200), st.text("/abc", min_size=1, max_size=100))
def test_the_bar_fits_its_width_and_always_shows_revoke(columns, path):
    text = bar.fitted(path, columns)
    assert len(text) <= columns
    assert text.endswith("[Revoke]")


@pytest.mark.parametrize(
    "keys", [b"q", b"\033[A", b"\033r", b"\033[12;3r", b"\033[<0;1;1M", b"\033[<2;12;1M", b"\033[<0;12;1m"]
)
def test_what_is_no_wish_to_revoke_is_none(keys):
    assert not bar.asks_to_revoke(keys, bar.line("/p"))
