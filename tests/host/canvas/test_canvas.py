"""What the canvas operations make of a document, without a file."""

from __future__ import annotations

import copy

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.canvas import model


def node(node_id: str, x=0, y=0, width=300, height=200, **more) -> dict:
    return {
        "id": node_id,
        "type": "terminal",
        "position": {"x": x, "y": y},
        "style": {"width": width, "height": height},
        "data": {"kind": "terminal"},
        **more,
    }


def document(*nodes) -> dict:
    return {"version": 1, "rev": 7, "nodes": list(nodes)}


def absolute(doc: dict, node_id: str) -> tuple:
    """Where a node stands on the canvas, whatever group it is in."""
    one = model.find(doc, node_id)
    x, y = one["position"]["x"], one["position"]["y"]
    if one.get("parentId"):
        above = absolute(doc, one["parentId"])
        x, y = x + above[0], y + above[1]
    return x, y


def test_a_frame_goes_around_its_nodes_and_leaves_them_where_they_are():
    doc = document(node("a", 100, 50), node("b", 500, -80), node("c", 9000, 9000))
    frame = model.group(doc, "g-1", ["b", "a"], "Backend")
    assert frame["type"] == "group"
    assert frame["data"] == {"kind": "group", "title": "Backend"}
    assert absolute(doc, "a") == (100, 50)
    assert absolute(doc, "b") == (500, -80)
    assert "parentId" not in model.find(doc, "c")
    for member in ("a", "b"):
        one = model.find(doc, member)
        assert one["parentId"] == "g-1"
        assert one["position"]["x"] >= 0
        assert one["position"]["y"] >= model.TOP_PADDING
        assert one["position"]["x"] + one["style"]["width"] <= frame["style"]["width"]
        assert one["position"]["y"] + one["style"]["height"] <= frame["style"]["height"]


def test_a_frame_stands_in_the_list_before_everything_that_it_holds():
    doc = document(node("x"), node("a"), "not a node", node("b"))
    model.group(doc, "g-1", ["b", "a"], "")
    assert [one["id"] if isinstance(one, dict) else one for one in doc["nodes"]] == ["x", "g-1", "a", "not a node", "b"]


def test_a_node_named_twice_is_moved_once():
    doc = document(node("a", 100, 100))
    model.group(doc, "g-1", ["a", "a"], "")
    assert absolute(doc, "a") == (100, 100)


def test_a_node_whose_parent_is_null_is_at_the_top_level():
    doc = document(node("a", 10, 20, parentId=None))
    model.group(doc, "g-1", ["a"], "")
    assert absolute(doc, "a") == (10, 20)


@pytest.mark.parametrize(
    ("ids", "error"),
    [
        (["a", "gone"], "Unknown node: gone"),
        (["a", "child"], "Node child is in a group already"),
        (["a", "g"], "Node g is a group"),
        (["a", "orphan"], "Node orphan is in a group already"),
    ],
)
def test_a_group_that_cannot_be_made_changes_nothing(ids, error):
    doc = document(node("a"), {**node("g"), "type": "group"}, node("child", parentId="g"), node("orphan", parentId="z"))
    before = copy.deepcopy(doc)
    with pytest.raises(CtlError, match=error):
        model.group(doc, "g-2", ids, "")
    assert doc == before


@pytest.mark.parametrize("size", [(240, 140), (8000, 8000), (800.5, 600.0)])
def test_a_size_stands_in_both_places_where_one_can_be_looked_for(size):
    doc = document(node("a"))
    written = {"width": size[0], "height": int(size[1])}
    assert model.resize(doc, "a", *size) == written
    assert doc["nodes"][0]["style"] == written
    assert {key: doc["nodes"][0][key] for key in written} == written


@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("terminal", (239, 140)),
        ("terminal", (240, 139)),
        ("group", (-5, 500)),
        ("sticky", (8001, 500)),
        ("editor", (500, 8001)),
        ("browser", (319, 240)),
        ("browser", (320, 239)),
    ],
)
def test_a_size_outside_the_bounds_is_refused_and_changes_nothing(kind, size):
    doc = document({**node("a"), "type": kind})
    before = copy.deepcopy(doc)
    with pytest.raises(CtlError, match="is not a size for a"):
        model.resize(doc, "a", *size)
    assert doc == before


@pytest.mark.parametrize(
    ("size", "right"),
    [
        ({"width": 500, "height": 10, "style": {"width": 1, "height": 1}}, 500),
        ({"width": 500, "style": {"width": 100, "height": 1}}, 100),
        ({"style": {"width": 100}}, 420),
        ({}, 420),
    ],
)
def test_a_nodes_size_is_its_own_else_its_styles_else_its_types(size, right):
    doc = document({"id": "a", "type": "chat", "position": {"x": 0, "y": 0}, **size})
    assert model.add_sticky(doc, "n", "x")["position"] == {"x": right + 40, "y": 60}


def test_the_first_node_of_a_canvas_has_a_place():
    assert model.add_sticky(document(), "n", "x")["position"] == {"x": 60, "y": 60}


def test_moving_and_resizing_keep_what_else_stands_there():
    doc = document({"id": "w", "type": "whiteboard", "position": {"x": 1, "y": 2, "z": 3}, "style": {"color": "red"}})
    assert model.move(doc, "w", 5, -6.5) == {"x": 5, "y": -6.5}
    model.resize(doc, "w", 400, 300)
    assert doc["nodes"][0] == {
        "id": "w",
        "type": "whiteboard",
        "position": {"x": 5, "y": -6.5, "z": 3},
        "style": {"color": "red", "width": 400, "height": 300},
        "width": 400,
        "height": 300,
    }


def test_a_node_without_a_place_gets_one():
    doc = document({"id": "a"}, {"id": "b", "position": None, "style": []})
    model.move(doc, "a", 1, 2)
    model.resize(doc, "b", 300, 300)
    assert doc["nodes"][0]["position"] == {"x": 1, "y": 2}
    assert doc["nodes"][1]["style"] == {"width": 300, "height": 300}


@pytest.mark.parametrize(
    ("add", "kind", "data"),
    [
        (lambda doc: model.add_sticky(doc, "n", "hi"), "sticky", {"text": "hi", "color": "amber", "collapsed": False}),
        (lambda doc: model.add_editor(doc, "n", "/p/f"), "editor", {"path": "/p/f", "preview": False}),
        (lambda doc: model.add_diff(doc, "n", "/p/f"), "diff", {"path": "/p/f", "base": "HEAD"}),
        (lambda doc: model.add_terminal(doc, "n", "T", "/p"), "terminal", {"title": "T", "cwd": "/p", "linkedIds": []}),
    ],
)
def test_new_nodes_have_the_shape_of_their_type_and_cover_nothing(add, kind, data):
    doc = document(node("a", 0, 0, 300, 100), node("b", 700, 5000, 100, 100), node("in", 9000, 0, parentId="a"))
    new = add(doc)
    assert doc["nodes"][-1] is new
    assert (new["id"], new["type"], new["data"]) == ("n", kind, {"kind": kind, **data})
    assert new["position"] == {"x": 840, "y": 60}
    assert (new["style"]["width"], new["style"]["height"]) == model.SIZES[kind]
    assert set(new) == {"id", "type", "position", "style", "data"}


@pytest.mark.parametrize("odd", [True, "720", None, 10**400, -1e300, [], {}])
def test_numbers_that_are_none_do_not_stop_a_new_node(odd):
    doc = document({"id": "a", "position": {"x": odd, "y": odd}, "style": {"width": odd, "height": odd}})
    assert model.add_sticky(doc, "n", "x")["position"] == {"x": 240, "y": 60}
    model.group(doc, "g", ["a", "n"], "")
    assert absolute(doc, "n") == (240, 60)
