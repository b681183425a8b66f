"""How rows of tmux become what a share knows: time, identity, choice. No tmux runs here."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from termsprawlctl.base.errors import UsageError
from termsprawlctl.share import clients
from termsprawlctl.share.control import quoted
from termsprawlctl.share.controller import QUIET_S, Controller
from termsprawlctl.share.tmux_view import TmuxView

IDENTITY = ("11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222")


def row(name="/dev/pts/1", **changes) -> str:
    members = {
        "server": "900",
        "start": "1000",
        "pid": "50",
        "created": "1001",
        "activity": "1001",
        "control": "0",
        "flags": "attached,focused,UTF-8",
        "prefix": "0",
        "mode": "0",
        "session": "$0",
        "window": "@0",
        "pane": "%0",
    }
    return "\t".join([*{**members, **changes}.values(), name])


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

    def look(self, *rows: str) -> None:
        self.view._look(list(rows), None, None)

    def context(self) -> dict:
        return self.controller.context()["context"]


def watched(test) -> None:
    """Run a test's body with a view, which needs a running loop."""

    async def body():
        test(Watched())

    asyncio.run(body())


@given(
    typed_s=st.floats(0, 1000, allow_nan=False),
    seen_after_s=st.floats(0, 5),
    asked_after_s=st.floats(0, 5),
)
def test_whenever_a_key_came_and_was_seen_the_user_has_a_second_and_a_half(typed_s, seen_after_s, asked_after_s):
    def body(it) -> None:
        it.look(row(activity=str(int(it.OFFSET_S))))
        it.now_s = 200.0 + typed_s
        second = str(int(it.now_s + it.OFFSET_S))
        before = it.context()["revision"]
        it.now_s += seen_after_s
        it.look(row(activity=second))
        assert it.context()["revision"] > before
        it.now_s += asked_after_s
        since_s = it.now_s - 200.0 - typed_s
        if since_s < QUIET_S - 1e-6:
            assert it.context()["blocked"]
        if since_s > QUIET_S + 1 + 1e-6:
            assert not it.context()["blocked"]

    watched(body)


def test_a_clock_that_was_set_back_blocks_for_a_few_seconds_and_not_for_ever():
    def body(it) -> None:
        it.look(row(activity=str(int(it.OFFSET_S) + 5000)))
        assert it.context()["blocked"]
        it.now_s += 1 + QUIET_S
        assert not it.context()["blocked"]

    watched(body)


@pytest.mark.parametrize("set_s", [3600.0, 5.0, -2.0, -3600.0])
def test_a_key_before_the_clock_was_set_still_gives_the_user_a_second_and_a_half(set_s):
    def body(it) -> None:
        it.now_s += 60.0
        it.look(row(activity=str(int(it.OFFSET_S + it.now_s - 30))))
        assert not it.context()["blocked"]
        typed_s = it.OFFSET_S + it.now_s
        it.set_s = set_s
        it.now_s += 0.2
        it.look(row(activity=str(int(typed_s))))
        assert it.context()["blocked"]
        it.now_s += 1 + QUIET_S
        assert not it.context()["blocked"]
        it.look(row(activity=str(int(typed_s))))
        assert not it.context()["blocked"]

    watched(body)


@pytest.mark.parametrize("change", [{"pid": "51"}, {"created": "1002"}, {"server": "901"}, {"start": "1001"}], ids=str)
def test_another_client_under_the_same_name_is_not_the_one_that_was_shared(change):
    def body(it) -> None:
        it.look(row())
        it.look(row(**change), row(name="/dev/pts/2"))
        assert it.ended == ["the client has been detached"]

    watched(body)


@pytest.mark.parametrize(
    ("change", "ready", "blocked"),
    [
        ({}, True, False),
        ({"flags": "attached,suspended,UTF-8"}, False, False),
        ({"prefix": "1"}, True, True),
        ({"mode": "1"}, True, True),
    ],
    ids=str,
)
def test_what_a_row_says_of_the_client(change, ready, blocked):
    def body(it) -> None:
        it.look(row(activity="5", **change))
        seen = it.context()
        assert (seen["ready"], seen["blocked"], seen["route"]) == (ready, blocked, "session")

    watched(body)


def test_a_client_without_a_session_is_at_home():
    def body(it) -> None:
        it.look(row(activity="5", session="", window="", pane=""))
        assert it.context()["route"] == "home"
        assert "sessionId" not in it.context()

    watched(body)


def test_an_id_depends_on_the_session_and_on_the_servers_start():
    ids = {
        clients.public_id(server, session)
        for server in (("1", "2"), ("1", "3"), ("2", "2"))
        for session in ("$0", "$1")
    }
    assert len(ids) == 6
    assert all(key.startswith("ses_") and key[4:].isalnum() for key in ids)


def test_session_names_may_hold_anything():
    lines = ["900\t1000\t$0\ta b: c|d", "900\t1000\t$1\t", "garbage"]
    assert [name for _, name in clients.parse_sessions(lines).values()] == ["a b: c|d", ""]


def chosen(*rows: str, named=None, pane=None) -> str:
    return clients.choose(clients.parse_clients(list(rows)), named=named, pane=pane).key.name


def test_the_only_person_is_chosen_and_watchers_do_not_count():
    assert chosen(row("a"), row("client-7", control="1")) == "a"


def test_a_named_client_is_taken_whatever_else_is_there():
    assert chosen(row("a"), row("b"), named="b") == "b"
    with pytest.raises(UsageError, match="a, b"):
        chosen(row("a"), row("b"), named="c")
    with pytest.raises(UsageError, match="no client client-7"):
        chosen(row("a"), row("client-7", control="1"), named="client-7")


def test_inside_tmux_the_client_that_shows_our_pane_is_chosen():
    here = ({"$1"}, "@5")
    assert chosen(row("a"), row("b", session="$1", window="@5"), pane=here) == "b"
    assert chosen(row("b", session="$1", window="@5"), row("c", session="$1", window="@6"), pane=here) == "b"
    assert chosen(row("a"), row("c", session="$1", window="@6"), pane=here) == "c"


def test_a_choice_that_is_none_is_left_to_the_user():
    with pytest.raises(UsageError, match=r"2 clients .* a, b"):
        chosen(row("a"), row("b"))
    with pytest.raises(UsageError, match="2 clients"):
        chosen(row("a", session="$1"), row("b", session="$1"), pane=({"$1"}, "@0"))
    with pytest.raises(UsageError, match="no client is attached"):
        chosen()
    with pytest.raises(UsageError, match="no client is attached"):
        chosen(row("a"), pane=({"$9"}, "@9"))


def test_words_are_quoted_for_tmux():
    assert quoted("/dev/pts/1") == "'/dev/pts/1'"
    assert quoted("a'b") == "'a'\\''b'"
