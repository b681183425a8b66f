"""What tmux gives back to a share: names and events of any text break neither a share nor a screen."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import hostile
from support.chosen import plain_path
from support.tui_share import RunningShare
from support.tui_tmux import Terminal, UserTmux
from support.waiting import PATIENCE_S, until

from termsprawlctl.base.tmux import Tmux
from termsprawlctl.share.sharing import clients
from termsprawlctl.share.sharing import view as view_module
from termsprawlctl.share.sharing.controller import Controller, Identity
from termsprawlctl.share.sharing.view import TmuxView

IDENTITY = Identity("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")
CLIENT = {
    **dict.fromkeys(clients._CLIENT_FIELDS, ""),
    "pid": "900",
    "start_time": "1000",
    "client_pid": "50",
    "client_created": "1001",
    "client_activity": "1001",
    "client_flags": "attached,UTF-8",
    "session_id": "$0",
    "window_id": "@0",
    "pane_id": "%0",
    "session_attached": "1",
    "cursor_x": "2",
    "cursor_y": "0",
    "pane_width": "80",
    "version": "3.3a",
    "pane_current_command": "sh",
    "client_name": "/dev/x",
}
CLIENT_ROW = "\t".join(CLIENT.values())
SESSION_ROW = "900\t1000\t$0\tone"
# What a terminal obeys.
CONTROLS = re.compile(b"[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]")

names = hostile.any_text.map(lambda text: text.replace("\n", "").replace("\t", ""))
fields = st.sampled_from(["", "0", "1", "900", "$0", "$1", "@0", "%0", "-1", "1e9", "\u0661", "9" * 5000]) | names
# Those that tell which client it is stay, so that the rest is looked at.
WHICH = ("pid", "start_time", "client_pid", "client_created", "client_name")
client_rows = st.dictionaries(st.sampled_from([name for name in CLIENT if name not in WHICH]), fields, max_size=4).map(
    lambda changes: "\t".join({**CLIENT, **changes}.values())
)
rows = (
    client_rows
    | st.lists(fields, max_size=30).map("\t".join)
    | st.sampled_from([CLIENT_ROW, SESSION_ROW])
    | hostile.any_text
)


class Said:
    """A tmux that says this to every command."""

    def __init__(self, text: str) -> None:
        self._text = text

    def run(self, *_command: str) -> str:
        return self._text


@given(st.lists(names, max_size=5))
def test_every_session_is_listed_under_its_own_name_whatever_that_is(given_names):
    text = "".join(f"900\t1000\t${number}\t{name}\n" for number, name in enumerate(given_names))
    assert list(clients.list_sessions(Said(text)).values()) == [
        clients.Session(f"${number}", name) for number, name in enumerate(given_names)
    ]


@given(st.lists(rows, max_size=5))
def test_rows_of_any_text_are_taken_or_left_out(lines):
    text = "\n".join(lines).encode("utf-8", "replace").decode()  # as what is read from tmux
    assert all(key.startswith("ses_") for key in clients.list_sessions(Said(text)))
    for client in clients.parse_clients(text.split("\n")):
        assert isinstance(client.activity, int)


# --- a tmux that says anything to a share that looks -----------------------------------------

marks = fields.map(lambda time: f"{view_module._MARK} {time}")
looks = st.builds(
    lambda before, mark, screen: [*before, mark, *screen],
    st.lists(client_rows | rows, min_size=1, max_size=3),
    marks,
    st.lists(rows | st.just("$ "), max_size=4),
)
lines = looks | st.lists(marks | rows, max_size=8)
outputs = hostile.encoded(lines.map("\n".join)) | hostile.binary
refusals = st.sampled_from(["", "not enough arguments", "border-lines", "no server running on /x"])


@pytest.fixture(scope="module")
def player(tmp_path_factory):
    """(path of a tmux, its folder): it plays the files `out` and `err` there and ends with the number in `status`."""
    folder = tmp_path_factory.mktemp("p")
    play = f"#!/bin/sh\ncd {folder}\ncat out\ncat err >&2\nread -r status <status\nexit $status\n"
    (folder / "tmux").write_text(play)
    (folder / "tmux").chmod(0o755)
    return str(folder / "tmux"), folder


async def watch(binary: str, session_id: str) -> tuple[list[str], list[dict], dict, list]:
    """Look at such a tmux and try to switch: the reasons for an end, the faults, the context then, the answers."""
    loop = asyncio.get_running_loop()
    faults: list[dict] = []
    ends: list[str] = []
    answers: list = []
    loop.set_exception_handler(lambda _loop, context: faults.append(context))
    view = TmuxView(Tmux(binary), clients.parse_client(CLIENT_ROW), ends.append)
    controller = Controller(view, IDENTITY)
    view._controller = controller  # without start(), which would watch a process of the same number
    await view.look()
    answers.append(await view._refusal(session_id))
    view.close()
    await asyncio.sleep(0)
    return ends, faults, controller.context(), answers


@pytest.mark.process
@given(outputs, refusals, st.sampled_from([0, 1]))
def test_a_tmux_that_says_anything_breaks_no_share(player, said, refusal, status):
    binary, folder = player
    (folder / "out").write_bytes(said)
    (folder / "err").write_text(refusal)
    (folder / "status").write_text(f"{status}\n")
    session_id = clients.public_id(clients.Server("900", "1000"), "$0")
    ends, faults, context, answers = asyncio.run(watch(binary, session_id))
    assert faults == []
    assert len(ends) <= 1
    assert context["status"] == "context"
    assert len(answers) == 1


# --- the real one ---------------------------------------------------------------------------

NAMES = [
    *("a\x1b[2Jb", "a\x1b]0;title\x07b", "a\tb", "a\nb", "a\rb", "a\x7fb", "a\x9b31mb", "a\x85b", "a\u2028b"),
    *("%end 1 1 1", "%exit", "$1", "@1", "-t", "a b", " a", "a;", "'\"\\", "#{pid}", "#S", "=two", "\u202eb"),
    *("\u00e9\u6f22\U0001f980", "a\ud83e", "x" * 3000),
]


@pytest.fixture(scope="module")
def tmux(tmp_path_factory):
    """A server with a session for each name; windows and panes of the first have had them all as titles."""
    server = UserTmux(tmp_path_factory.mktemp("n"), plain_path())
    server.new_session("one")
    server.first = server.attach("one")
    for name in NAMES:
        raw = name.encode("utf-8", "surrogatepass")
        base = [server._binary, "-S", server.socket]
        # It refuses some, and writes some in another way.
        argv = [*base, "new-session", "-d", "-s", raw]
        subprocess.run(argv, env=server.env, capture_output=True, timeout=PATIENCE_S, check=False)
    yield server
    server.close()


@pytest.fixture
def share(ctl, tmux):
    running = RunningShare([ctl, "tui", "share", "--socket-path", tmux.socket], tmux.env)
    yield running
    running.stop(signal.SIGKILL)


def test_sessions_of_any_name_are_listed_one_a_line_and_switched_to(ctl, tmux, share):
    listed = subprocess.run(
        [ctl, "tui", "sessions", "--socket-path", tmux.socket], env=tmux.env, capture_output=True, check=True
    ).stdout
    ids = [row.split("\t")[0] for row in listed.decode().split("\n")[:-1]]
    assert len(set(ids)) == len(tmux.run("list-sessions", "-F", "#{session_id}").splitlines())
    as_json = subprocess.run(
        [ctl, "tui", "sessions", "--json", "--socket-path", tmux.socket], env=tmux.env, capture_output=True, check=True
    ).stdout
    assert [entry["sessionId"] for entry in json.loads(as_json)] == ids
    for session_id in ids:
        answer = share.select(session_id, context=share.quiet_context())
        assert answer["status"] == "applied"
        assert answer["context"]["sessionId"] == session_id
    share.select(ids[0], context=share.quiet_context())


def test_titles_and_names_that_change_under_a_share_break_nothing_and_are_not_shown(tmux, share):
    share.quiet_context()
    for name in NAMES:
        raw = name.encode("utf-8", "surrogatepass")
        base = [tmux._binary, "-S", tmux.socket]
        for command in (["rename-window"], ["select-pane", "-T"], ["rename-session"], ["display-message", "-d", "1"]):
            subprocess.run([*base, *command, raw], env=tmux.env, capture_output=True, timeout=PATIENCE_S, check=False)
    until(lambda: not share.context()["blocked"], "the user is quiet")
    assert share.process.poll() is None
    shown = "".join(share.out + share.err).encode()
    assert not CONTROLS.search(shown)
    assert set(share.out[1:]) <= {line for line in share.out if line.startswith("get_view_context: context, revision ")}


def test_no_name_reaches_the_screen_as_something_that_a_terminal_obeys(ctl, tmux):
    sessions = len(tmux.run("list-sessions", "-F", "#{session_id}").splitlines())
    for words in ([], ["--json"]):
        terminal = Terminal([ctl, "tui", "sessions", *words, "--socket-path", tmux.socket], tmux.env, columns=500)
        assert terminal.process.wait(PATIENCE_S) == 0
        until(lambda seen=terminal: seen.output.count(b"ses_") == sessions, "all are listed")
        terminal.close()
        assert not CONTROLS.search(terminal.output.replace(b"\r\n", b"\n"))
    assert os.path.exists(tmux.socket)
