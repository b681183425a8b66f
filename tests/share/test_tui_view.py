"""How rows of tmux become what a share knows: time, identity, choice. No tmux runs here."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.base.errors import UsageError
from termsprawlctl.base.tmux import quoted
from termsprawlctl.share.sharing import clients
from termsprawlctl.share.sharing import view as view_module
from termsprawlctl.share.sharing.ask import Answer
from termsprawlctl.share.sharing.controller import QUIET_S, Controller, Identity
from termsprawlctl.share.sharing.view import TmuxView

IDENTITY = Identity("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")


SERVER = clients.Server("900", "1000")


def row(name="/dev/pts/1", **changes) -> str:
    """A row of list-clients; members by the names of tmux's formats."""
    members = {
        **dict.fromkeys(clients._CLIENT_FIELDS, ""),
        "pid": SERVER.pid,
        "start_time": SERVER.start,
        "client_pid": "50",
        "client_created": "1001",
        "client_activity": "1001",
        "client_control_mode": "0",
        "client_flags": "attached,focused,UTF-8",
        "client_prefix": "0",
        "pane_in_mode": "0",
        "session_id": "$0",
        "window_id": "@0",
        "pane_id": "%0",
        "session_attached": "1",
        "cursor_x": "2",
        "cursor_y": "0",
        "pane_width": "80",
        "version": "3.3a",
        "pane_current_command": "sh",
        "client_name": name,
    }
    assert set(changes) <= set(members)
    return "\t".join({**members, **changes}.values())


class Watched:
    """A view that is fed with rows by hand, at times that the test chooses; wall and own clock differ."""

    OFFSET_S = 1_700_000_000.0

    def __init__(self) -> None:
        self.now_s = 100.0
        self.set_s = 0.0  # by how much the wall clock was set since
        self.ended: list[str] = []
        self.view = TmuxView(
            None,
            clients.parse_client(row()),
            self.ended.append,
            wall_clock=lambda: self.now_s + self.OFFSET_S + self.set_s,
            clock=lambda: self.now_s,
        )
        self.controller = Controller(self.view, IDENTITY, clock=lambda: self.now_s)
        self.view._controller = self.controller

    async def look(self, *rows: str, screen: str = "$", overlaid: bool = False) -> None:
        """One look; tmux answers with these rows, the pane in front shows `screen`, a menu is open or not."""
        mark = f"{view_module._MARK} {int(self.now_s + self.OFFSET_S)}"

        async def answer(*commands) -> Answer:
            if commands[0][0] == "list-clients":
                return Answer(agreed=True, lines=[*rows, mark, *screen.split("\n")], words="")
            return Answer(agreed=overlaid, lines=[], words="not enough arguments")

        self.view._ask = answer
        await self.view.look()

    def context(self) -> dict:
        return self.controller.context()["context"]


def watched(test) -> None:
    """Run a test's body with a view, which needs a running loop."""

    async def body():
        await test(Watched())

    asyncio.run(body())


@given(
    typed_s=st.floats(0, 1000, allow_nan=False),
    seen_after_s=st.floats(0, 5),
    asked_after_s=st.floats(0, 5),
)
def test_whenever_a_key_came_and_was_seen_the_user_has_a_second_and_a_half(typed_s, seen_after_s, asked_after_s):
    async def body(it) -> None:
        await it.look(row(client_activity=str(int(it.OFFSET_S))))
        it.now_s = 200.0 + typed_s
        second = str(int(it.now_s + it.OFFSET_S))
        before = it.context()["revision"]
        it.now_s += seen_after_s
        await it.look(row(client_activity=second))
        assert it.context()["revision"] > before
        it.now_s += asked_after_s
        since_s = it.now_s - 200.0 - typed_s
        if since_s < QUIET_S - 1e-6:
            assert it.context()["blocked"]
        if since_s > QUIET_S + 1 + 1e-6:
            assert not it.context()["blocked"]

    watched(body)


def test_a_clock_that_was_set_back_blocks_for_a_few_seconds_and_not_for_ever():
    async def body(it) -> None:
        await it.look(row(client_activity=str(int(it.OFFSET_S) + 5000)))
        assert it.context()["blocked"]
        it.now_s += 1 + QUIET_S
        assert not it.context()["blocked"]

    watched(body)


@pytest.mark.parametrize("set_s", [3600.0, 5.0, -2.0, -3600.0])
def test_a_key_before_the_clock_was_set_still_gives_the_user_a_second_and_a_half(set_s):
    async def body(it) -> None:
        it.now_s += 60.0
        await it.look(row(client_activity=str(int(it.OFFSET_S + it.now_s - 30))))
        assert not it.context()["blocked"]
        typed_s = it.OFFSET_S + it.now_s
        it.set_s = set_s
        it.now_s += 0.2
        await it.look(row(client_activity=str(int(typed_s))))
        assert it.context()["blocked"]
        it.now_s += 1 + QUIET_S
        assert not it.context()["blocked"]
        await it.look(row(client_activity=str(int(typed_s))))
        assert not it.context()["blocked"]

    watched(body)


@pytest.mark.parametrize(
    "change", [{"client_pid": "51"}, {"client_created": "1002"}, {"pid": "901"}, {"start_time": "1001"}], ids=str
)
def test_another_client_under_the_same_name_is_not_the_one_that_was_shared(change):
    async def body(it) -> None:
        await it.look(row())
        await it.look(row(**change), row(name="/dev/pts/2"))
        assert it.ended == ["the client has been detached"]

    watched(body)


@pytest.mark.parametrize(
    ("change", "ready", "blocked"),
    [
        ({}, True, False),
        ({"client_flags": "attached,suspended,UTF-8"}, False, False),
        ({"client_prefix": "1"}, True, True),
        ({"pane_in_mode": "1"}, True, True),
    ],
    ids=str,
)
def test_what_a_row_says_of_the_client(change, ready, blocked):
    async def body(it) -> None:
        await it.look(row(client_activity="5", **change))
        seen = it.context()
        assert (seen["ready"], seen["blocked"], seen["route"]) == (ready, blocked, "session")

    watched(body)


def test_a_client_without_a_session_is_at_home():
    async def body(it) -> None:
        await it.look(row(client_activity="5", session_id="", window_id="", pane_id=""))
        assert it.context()["route"] == "home"
        assert "sessionId" not in it.context()

    watched(body)


def test_an_id_depends_on_the_session_and_on_the_servers_start():
    ids = {
        clients.public_id(server, session)
        for server in (clients.Server("1", "2"), clients.Server("1", "3"), clients.Server("2", "2"))
        for session in ("$0", "$1")
    }
    assert len(ids) == 6
    assert all(key.startswith("ses_") and key[4:].isalnum() for key in ids)


def test_session_names_may_hold_anything():
    lines = ["900\t1000\t$0\ta b: c|d", "900\t1000\t$1\t", "garbage"]
    assert [session.name for session in clients.parse_sessions(lines).values()] == ["a b: c|d", ""]


def chosen(*rows: str, named=None, pane=None) -> str:
    return clients.choose(clients.parse_clients(list(rows)), named=named, pane=pane).key.name


def test_the_only_person_is_chosen_and_watchers_do_not_count():
    assert chosen(row("a"), row("client-7", client_control_mode="1")) == "a"


def test_a_named_client_is_taken_whatever_else_is_there():
    assert chosen(row("a"), row("b"), named="b") == "b"
    with pytest.raises(UsageError, match="a, b"):
        chosen(row("a"), row("b"), named="c")
    with pytest.raises(UsageError, match="no client client-7"):
        chosen(row("a"), row("client-7", client_control_mode="1"), named="client-7")


def test_inside_tmux_the_client_that_shows_our_pane_is_chosen():
    here = clients.Here(frozenset({"$1"}), "@5")
    assert chosen(row("a"), row("b", session_id="$1", window_id="@5"), pane=here) == "b"
    assert (
        chosen(row("b", session_id="$1", window_id="@5"), row("c", session_id="$1", window_id="@6"), pane=here) == "b"
    )
    assert chosen(row("a"), row("c", session_id="$1", window_id="@6"), pane=here) == "c"


def test_a_choice_that_is_none_is_left_to_the_user():
    with pytest.raises(UsageError, match=r"2 clients .* a, b"):
        chosen(row("a"), row("b"))
    with pytest.raises(UsageError, match="2 clients"):
        chosen(row("a", session_id="$1"), row("b", session_id="$1"), pane=clients.Here(frozenset({"$1"}), "@0"))
    with pytest.raises(UsageError, match="no client is attached"):
        chosen()
    with pytest.raises(UsageError, match="no client is attached"):
        chosen(row("a"), pane=clients.Here(frozenset({"$9"}), "@9"))


def test_words_are_quoted_for_tmux():
    assert quoted("/dev/pts/1") == "'/dev/pts/1'"
    assert quoted("a'b") == "'a'\\''b'"


def test_however_often_somebody_asks_while_a_menu_is_open_it_is_looked_at_four_times_a_second(monkeypatch):
    monkeypatch.setattr(view_module, "OVERLAY_POLL_S", 3600.0)

    async def body(it) -> None:
        for _ in range(20):
            await it.look(row(), overlaid=True)
        waiting = [handle for handle in asyncio.get_running_loop()._scheduled if not handle.cancelled()]
        assert len(waiting) == 1
        assert it.context()["blocked"]

    watched(body)


def test_who_asks_during_a_look_gets_the_next_one_together_with_all_others(monkeypatch):
    async def body(it) -> None:
        await it.look(row())
        looks = []
        answer = it.view._ask

        async def counted(*commands) -> Answer:
            if commands[0][0] == "list-clients":
                looks.append(commands)
            await asyncio.sleep(0)
            return await answer(*commands)

        it.view._ask = counted
        await asyncio.gather(*(it.view.look() for _ in range(50)))
        assert len(looks) <= 2

    watched(body)
