"""Operations that only the embedded host has: listed when the app names them, and only then."""

from __future__ import annotations

import pytest
from support.mcp_app import StandInApp

from termsprawlctl.app import bridge as bridge_module
from termsprawlctl.app.bridge import Bridge
from termsprawlctl.mcp.provider import Context, ProviderFault
from termsprawlctl.operations.table import OPERATIONS, Operation


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path) as running:
        yield running


@pytest.fixture
def extensions(monkeypatch):
    """Two extensions that no release has."""
    common = {name: one for name, one in OPERATIONS.items() if not one.extension}
    added = {
        name: Operation(name, name, "No release has it.", guide="overview", extension=True)
        for name in ("one_more", "another")
    }
    monkeypatch.setattr(bridge_module, "OPERATIONS", {**common, **added})
    return list(added)


def offer(app, *names: str) -> None:
    app.replies["session_info"] = {"ok": True, "value": {"operations": ["session_info", *names]}}


def listed(bridge: Bridge) -> list[str]:
    return [tool["name"] for tool in bridge.tools() if tool["name"] not in OPERATIONS]


@pytest.mark.parametrize("offered", [[], ["another"], ["another", "one_more"], ["unknown"]])
def test_the_handshake_tells_which_extensions_are_listed(app, extensions, offered):
    offer(app, *offered)
    bridge = Bridge(app.session)
    bridge.on_initialize(Context())
    assert not bridge.tools_block()
    assert listed(bridge) == [name for name in extensions if name in offered]
    assert app.operations == ["session_info"]


def test_without_a_handshake_the_list_asks_once(app, extensions):
    offer(app, "one_more")
    bridge = Bridge(app.session)
    assert bridge.tools_block()
    assert listed(bridge) == ["one_more"]
    assert listed(bridge) == ["one_more"]
    assert app.operations == ["session_info"]


def test_an_app_that_is_away_leaves_the_table_as_it_stands_until_it_is_back(app, extensions):
    offer(app, "one_more")
    app.stop()
    bridge = Bridge(app.session)
    assert listed(bridge) == []
    app.start()
    assert listed(bridge) == ["one_more"]


def test_a_session_info_that_the_client_calls_tells_as_well(app, extensions):
    offer(app, "another")
    bridge = Bridge(app.session)
    bridge.call("session_info", {}, Context())
    assert listed(bridge) == ["another"]
    assert app.operations == ["session_info"]


def test_another_handshake_tells_anew(app, extensions):
    bridge = Bridge(app.session)
    for offered in (["one_more"], [], ["another"]):
        offer(app, *offered)
        bridge.on_initialize(Context())
        assert listed(bridge) == offered


def test_a_list_that_got_old_is_learned_anew_and_kept_while_the_app_does_not_answer(app, extensions, monkeypatch):
    offer(app, *extensions)
    bridge = Bridge(app.session)
    bridge.on_initialize(Context())
    offer(app, "another")
    assert listed(bridge) == extensions
    monkeypatch.setattr(bridge_module, "LIST_TTL_MS", 0)
    assert bridge.tools_block()
    assert listed(bridge) == ["another"]
    app.replies["session_info"] = {"ok": False, "error": "busy"}
    assert listed(bridge) == ["another"]
    app.stop()
    assert listed(bridge) == ["another"]
    app.start()
    offer(app)
    assert listed(bridge) == []


@pytest.mark.parametrize("value", [None, [], {}, {"operations": None}, {"operations": "one_more"}, {"operations": [1]}])
def test_an_app_that_does_not_name_its_operations_offers_no_extensions(app, extensions, value):
    app.replies["session_info"] = {"ok": True, "value": value}
    bridge = Bridge(app.session)
    bridge.on_initialize(Context())
    assert listed(bridge) == []


def test_a_list_that_may_change_is_cached_shortly_and_by_nobody_else():
    assert bridge_module.OPTIONS.list_ttl_ms <= 60_000
    assert bridge_module.OPTIONS.list_is_private


def test_a_handshake_that_is_cancelled_while_it_waits_gives_up(app):
    app.stop()
    context = Context()
    context.cancel()
    with pytest.raises(ProviderFault, match="Tool connection unavailable"):
        Bridge(app.session, wait_s=600).on_initialize(context)


def test_a_handshake_that_waits_ends_when_its_client_has_sent_its_last(app):
    app.stop()
    context = Context()
    context.last_try.set()
    with pytest.raises(ProviderFault, match="Tool connection unavailable"):
        Bridge(app.session, wait_s=600).on_initialize(context)
    app.start()
    # It is a last try, but a try.
    Bridge(app.session, wait_s=600).on_initialize(context)


def test_an_action_on_cancel_runs_once_whenever_it_is_set():
    ran: list[str] = []
    context = Context()
    context.on_cancel(lambda: ran.append("replaced"))
    context.on_cancel(lambda: ran.append("early"))
    context.cancel()
    context.cancel()
    assert ran == ["early"]
    context.on_cancel(lambda: ran.append("late"))
    assert ran == ["early", "late"]
    context.on_cancel(None)
    context.cancel()
    assert ran == ["early", "late"]
