"""The room that runs tmux: what it makes of targets that are gone, of commands in one step, of a broken binary."""

from __future__ import annotations

import shutil

import pytest

from termsprawlctl.base import tmux
from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.terminals.nodes import Terminals
from termsprawlctl.host.terminals.panes import Panes
from termsprawlctl.host.terminals.server import Server

pytestmark = pytest.mark.process


@pytest.fixture
def server(tmp_path_factory):
    """A tmux server of its own, with one session."""
    socket = tmp_path_factory.mktemp("t") / "s"
    running = Server(shutil.which("tmux"), "-S", str(socket), "-f", "/dev/null")
    running.run("new-session", "-d", "-s", "ts-here", "cat")
    yield running
    running.run("kill-server")


def test_a_format_of_a_target_that_is_gone_is_an_error_and_not_an_empty_text(server):
    assert server.display("=ts-here:", "[#{session_name}]") == "[ts-here]"
    assert server.display("=ts-here:", "") == ""
    for gone in ("=ts-gone:", "=ts-her:", "%99"):
        with pytest.raises(tmux.TmuxError, match="can't find pane"):
            server.display(gone, "#{session_name}")


def test_a_terminal_that_is_gone_is_told_as_ended_however_one_looks_at_it(server):
    assert Terminals(server).describe("here", "#{session_name}") == "ts-here"
    assert Terminals(server).project_of("gone") is None
    for look in (
        lambda: Terminals(server).describe("gone", "#{pane_tty} #{pane_pid}"),
        lambda: Terminals(server).interrupt("gone"),
        lambda: Panes(server).look("gone"),
    ):
        with pytest.raises(CtlError, match="The terminal gone has ended"):
            look()


def test_commands_of_one_step_run_in_order_with_their_arguments_unchanged_up_to_the_first_refusal(server):
    value = "a;b # %H; 'c' ;"
    server.run_all(
        ("new-session", "-d", "-s", "ts-new", "cat"),
        ("set-option", "-t", "=ts-new:", "@mark", value),
    )
    assert server.display("=ts-new:", "#{@mark}") == value
    with pytest.raises(tmux.TmuxError, match="ts-gone"):
        server.run_all(
            ("set-option", "-t", "=ts-new:", "@mark", "one"),
            ("set-option", "-t", "=ts-gone:", "@mark", "two"),
            ("set-option", "-t", "=ts-new:", "@mark", "three"),
        )
    assert server.display("=ts-new:", "#{@mark}") == "one"


@pytest.mark.parametrize(
    ("script", "told"),
    [
        ("echo 'error while loading shared libraries' >&2; exit 127", "status 127 and said: error while loading"),
        ("echo tmux 3.4; exit 1", "status 1 and said: tmux 3.4"),
        ("exit 0", "status 0"),
        ("echo something else 9.9", "status 0 and said: something else 9.9"),
        ("kill -9 $$", "status -9"),
    ],
)
def test_a_tmux_that_does_not_work_is_named_before_anything_is_started_with_it(tmp_path, script, told):
    broken = tmp_path / "tmux"
    broken.write_text(f"#!/bin/sh\n{script}\n")
    broken.chmod(0o755)
    with pytest.raises(CtlError) as refusal:
        tmux.find(which=lambda _name: str(broken))
    assert refusal.value.message.startswith(f"{broken} does not work")
    assert told in refusal.value.message
    assert "Install tmux 3.2 or newer" in refusal.value.remedy


@pytest.mark.parametrize("answer", ["tmux 3.2", "tmux 3.3a", "tmux next-3.6", "tmux master", "tmux openbsd-7.4"])
def test_a_tmux_that_is_new_enough_is_taken(tmp_path, answer):
    working = tmp_path / "tmux"
    working.write_text(f"#!/bin/sh\necho {answer}\n")
    working.chmod(0o755)
    assert tmux.find(which=lambda _name: str(working)) == str(working)
