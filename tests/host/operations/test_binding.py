"""Each operation has one handler and each handler one operation; anything else stops the host from being built."""

from __future__ import annotations

import pytest

from termsprawlctl.host.operations import HANDLERS, binding, run
from termsprawlctl.operations.table import OPERATIONS


def test_all_of_the_table_but_the_browser_is_offered_in_its_order():
    assert list(HANDLERS) == [name for name in OPERATIONS if not name.startswith("browser_")]


@pytest.mark.parametrize("name", ["nonsense", "browser_open", "canvas_list"])
def test_a_handler_is_bound_to_an_operation_that_has_none_yet(name):
    with pytest.raises(ValueError, match=name):
        binding.handles(name)(lambda _host, _caller, _args: None)


def test_an_operation_without_a_handler_stops_the_host(monkeypatch):
    monkeypatch.delitem(binding._bound, "canvas_list")
    with pytest.raises(ValueError, match="no handler for canvas_list"):
        binding.all_bound()


def test_an_operation_that_this_host_does_not_offer_is_refused_with_the_reason():
    with pytest.raises(binding.ToolRefusal, match="no browser"):
        run(None, None, "browser_open", {"url": "http://127.0.0.1/"})
