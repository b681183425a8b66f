"""Hostile ToolResults, of the right form and with anything in them, for everything that looks into one."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import os
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import hostile
from support.session_files import SessionFiles

from termsprawlctl.app import bridge, transport
from termsprawlctl.base import console
from termsprawlctl.base.errors import CtlError
from termsprawlctl.cli import results
from termsprawlctl.cli.commands import launch
from termsprawlctl.cli.completion.values import Values
from termsprawlctl.doctor import checks, connection
from termsprawlctl.mcp.provider import Context, ProviderFault
from termsprawlctl.operations.table import OPERATIONS
from termsprawlctl.view.shell import View

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")  # by a terminal

# --- what an app may answer ---------------------------------------------------------------

ids = hostile.values_beside("n-1", "n-2", "", "a b", None)
names = hostile.values_beside(*OPERATIONS)
session_infos = hostile.objects_with(
    nodeId=ids,
    projectId=ids,
    instanceId=ids,
    appVersion=hostile.values_beside("1.2.3"),
    status=hostile.objects_with(state=hostile.values_beside("connected"), adapter=ids, reason=ids)
    | hostile.json_values,
    operations=st.lists(names, max_size=4) | hostile.json_values,
)
sizes = hostile.values_beside(0, 100, 1e308, -5, 10**400)
nodes = hostile.objects_with(
    id=ids,
    type=hostile.values_beside("terminal", "group", "sticky", "browser"),
    parentId=ids,
    position=hostile.objects_with(x=sizes, y=sizes) | hostile.json_values,
    style=hostile.objects_with(width=sizes, height=sizes) | hostile.json_values,
    data=hostile.objects_with(title=hostile.values_beside("t"), text=hostile.json_values, color=hostile.json_values),
)
node_lists = st.lists(hostile.mostly(nodes, hostile.json_values), max_size=5)
base64_letters = st.text(st.sampled_from("AAz9+/=\n -_é"), max_size=24)
pictures = st.sampled_from(["iVBORw0KGgo=", "/9j/", "R0lGODlh", "UklGRgAAAABXRUJQ", "AAAA", ""]) | base64_letters
images = st.builds(lambda image: {"image": image}, hostile.mostly(pictures, hostile.json_values))
values = st.sampled_from([session_infos, node_lists, images, hostile.json_values]).flatmap(lambda strategy: strategy)
good = st.builds(lambda value, more: {**more, "ok": True, "value": value}, values, st.just({}) | hostile.json_objects)
bad = st.builds(lambda error: {"ok": False, "error": error}, hostile.any_text)
tool_results = hostile.mostly(good, bad | st.just({"ok": True}))


@pytest.fixture
def app(monkeypatch):
    """`app(result)`: what each call from now on is answered."""

    def answers(result: dict) -> None:
        monkeypatch.setattr(transport, "call", lambda *_, **__: json.loads(json.dumps(result)))

    return answers


@pytest.fixture
def shown(monkeypatch) -> list[str]:
    """What goes to standard output and error."""
    found: list[str] = []
    for name in ("out", "err", "paint"):
        monkeypatch.setattr(console, name, lambda text, *_: found.append(text))
    return found


@given(tool_results)
def test_the_bridge_makes_an_mcp_result_of_any_result(app, result):
    app(result)
    provider, context = bridge.Bridge("/nowhere"), Context()
    answer = provider.call("session_info", {}, context)
    assert answer["isError"] is not result["ok"]
    (block,) = answer["content"]
    if block["type"] == "image":
        data = base64.b64decode(block["data"], validate=True)
        kinds = {"image/png": b"", "image/jpeg": b"\xff\xd8\xff", "image/gif": b"GIF8", "image/webp": b"RIFF"}
        assert data
        assert data.startswith(kinds[block["mimeType"]])
    else:
        assert json.loads(block["text"]) == json.loads(json.dumps(result))
    if result["ok"]:
        provider.on_initialize(context)
    else:
        with pytest.raises(ProviderFault):
            provider.on_initialize(context)
    listed = [tool["name"] for tool in provider.tools()]
    assert set(listed) <= set(OPERATIONS)
    if not any(OPERATIONS[name].extension for name in listed):  # it is not taken for an embedded host
        assert listed == [one.name for one in OPERATIONS.values() if not one.extension]


@given(tool_results, hostile.json_objects, hostile.json_objects, st.floats(0, 1e6))
def test_doctor_explains_any_result(result, session, endpoint, took_ms):
    found = connection.check_answer(result, took_ms, session, endpoint)
    assert found
    for colour in (False, True):
        text = re.sub("\x1b\\[[0-9]+m", "", checks.as_text(found, colour=colour))
        assert not OBEYED.search(text)
    json.dumps(checks.as_json(found), allow_nan=False)


forms = st.sampled_from([(None, False), (None, True), ("-", False)])


@pytest.mark.process
@example({"ok": True, "value": [{"id": []}, {"id": {}}]}, (None, False))
@given(tool_results, forms)
def test_the_map_draws_any_canvas(app, shown, tmp_path, monkeypatch, result, form):
    app(result)
    monkeypatch.chdir(tmp_path)
    svg_file, as_json = form
    view = View(str(SessionFiles(tmp_path).session), str(tmp_path), svg_file=svg_file, as_json=as_json)
    shown.clear()
    try:
        assert view.once() == 0
    except CtlError:
        assert not result["ok"]
    else:
        assert as_json or not OBEYED.search(shown[-1])


@given(tool_results)
def test_completion_offers_only_ids_of_any_canvas(app, result):
    app(result)
    offered = Values({"TERMSPRAWL_SESSION_FILE": "/nowhere"})
    for value in (*offered.nodes(), *offered.terminals()):
        assert re.fullmatch(r"[A-Za-z0-9_-]+", value.word)
        assert not OBEYED.search(value.about)


paths = st.lists(
    st.sampled_from(["value", "nodes", "0", "1", "9" * 5000, "image", "\u0661", "-1", "", "id"]), max_size=5
)


@given(tool_results, paths.map(".".join) | hostile.any_text, st.sampled_from(["picture", None]))
def test_call_prints_a_field_of_any_result_and_saves_its_picture(shown, tmp_path, result, field, save):
    path = tmp_path / "picture"
    path.unlink(missing_ok=True)
    shown.clear()
    status = results.deliver(field, save and str(path))(result)
    assert status in (0, 1)
    assert shown
    assert status == 1 or result["ok"]
    image = result["value"].get("image") if result["ok"] and isinstance(result.get("value"), dict) else None
    if save and isinstance(image, str):
        try:
            expected = base64.b64decode(image, validate=True)
        except (binascii.Error, ValueError):
            assert not path.exists()
        else:
            assert path.read_bytes() == expected


@pytest.mark.parametrize("field", ["value." + "9" * 5000, "value.\u0661", "value.-1", "value.0x0", "value.00.a"])
def test_a_field_that_is_no_number_of_an_item_is_told(shown, field):
    shown.clear()
    assert results.deliver(field, None)({"ok": True, "value": [1]}) == 1
    assert "the result has no value." in shown[-1]


@example({"ok": True})
@example({"ok": True, "value": {"nodeId": None}})
@given(tool_results)
def test_launch_takes_any_result(app, shown, tmp_path, monkeypatch, result):
    app(result)
    monkeypatch.setattr("termsprawlctl.host.daemon.control.start", lambda *_: "/nowhere")
    arguments = argparse.Namespace(
        agent="codex", data=str(tmp_path), project=os.curdir, new=False, json=False, attach=False
    )
    shown.clear()
    try:
        status = launch.run(arguments)
    except CtlError:
        return
    assert status == 0 or not result["ok"]
