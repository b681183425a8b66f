"""A project's file may hold anything: it is changed in the one place that was asked for, or not touched at all."""

from __future__ import annotations

import copy
import json
import os
import xml.dom.minidom
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support import corpus, hostile
from support.quick_folder import quick_folder

from termsprawlctl.base import jsontext
from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.canvas import model, project_file
from termsprawlctl.view import svg, text
from termsprawlctl.view.model import as_json, picture

IDS = ["n-1", "n-2", "g-1", "", "\ud800", "__proto__"]
ids = st.sampled_from(IDS)
place = hostile.objects_with(
    **dict.fromkeys(("x", "y", "width", "height"), hostile.numbers | hostile.json_values),
)
nodes = hostile.objects_with(
    id=ids | hostile.values_beside("n-1"),
    type=hostile.values_beside("terminal", "group", "sticky", "editor", "browser", "what nobody knows"),
    position=place | hostile.json_values,
    style=place | hostile.json_values,
    parentId=ids | hostile.json_values,
    selected=hostile.values_beside(True, False),
    data=hostile.objects_with(title=hostile.json_values, text=hostile.json_values) | hostile.json_values,
)
documents = hostile.objects_with(
    version=hostile.values_beside(1, 1, 1),
    rev=hostile.values_beside(7) | hostile.numbers,
    nodes=st.lists(nodes | nodes | hostile.json_values, max_size=6) | hostile.json_values,
)
whole_documents = st.builds(
    lambda content, rev, some: {**content, "version": 1, "rev": rev, "nodes": some},
    hostile.json_objects,
    hostile.numbers,
    st.lists(nodes | nodes | hostile.json_values, max_size=6),
)


def texts_of(values):
    """Their texts: as a program writes them, or with surrogates and everything else escaped."""
    return hostile.encoded(values.map(hostile.dump) | values.map(json.dumps))


files = (
    texts_of(whole_documents) | texts_of(documents) | hostile.damaged(texts_of(whole_documents)) | hostile.json_bytes
)
coordinates = st.sampled_from([0, -1, 0.5, 1e6, -1e6, 5e-324])
# name: (edit, keys of a node that it may change)
EDITS = {
    "move": (lambda doc, some, x, y: model.move(doc, some[0], x, y), {"position"}),
    "resize": (lambda doc, some, x, y: model.resize(doc, some[0], x, y), {"style"}),
    "group": (lambda doc, some, x, y: model.group(doc, "new", some, "\ud800title"), {"position", "parentId"}),
    "sticky": (lambda doc, some, x, y: model.add_sticky(doc, "new", "\udc00text"), set()),
    "terminal": (lambda doc, some, x, y: model.add_terminal(doc, "new", "title", "/p"), set()),
    "remove": (lambda doc, some, x, y: model.remove(doc, some[0]), set()),
}


@pytest.fixture
def file():
    with quick_folder("project") as folder:
        (folder / ".termsprawl").mkdir()
        yield folder / ".termsprawl" / "project.json"


def check_change(file: Path, data: bytes, kind: str, some: list[str], x: float, y: float) -> None:
    """Make one change of a file with this content; whatever it is, nothing else may be different afterwards."""
    file.write_bytes(data)
    edit, keys = EDITS[kind]
    try:
        project_file.change(str(file.parent.parent), lambda document: edit(document, some, x, y))
    except CtlError as no:
        refused = str(no)
    else:
        refused = ""
    if refused:
        assert file.read_bytes() == data
        assert len(refused) < 1000
    else:
        after = jsontext.loads(file.read_bytes())
        before = jsontext.loads(data)
        if file.read_bytes() != data:
            rev = before.get("rev")
            assert after["rev"] == (int(rev) + 1 if isinstance(rev, (int, float)) else 1)
        assert same({**after, "rev": 0, "nodes": 0}, {**before, "rev": 0, "nodes": 0})
        compare_nodes(before["nodes"], after["nodes"], kind, some, keys)
    assert os.listdir(file.parent) == ["project.json"]


def compare_nodes(before: list, after: list, kind: str, some: list[str], keys: set) -> None:
    if kind == "remove":
        before = [node for node in before if not (isinstance(node, dict) and node.get("id") == some[0])]
    added = [node for node in after if isinstance(node, dict) and node.get("id") == "new"]
    assert len(added) == (kind in ("group", "sticky", "terminal"))
    after = [node for node in after if node not in added]
    assert len(after) == len(before)
    for old, new in zip(before, after):
        if not isinstance(old, dict):
            assert same(old, new)
            continue
        assert same({**old, **dict.fromkeys(keys)}, {**new, **dict.fromkeys(keys)})
        for key in keys & {"position", "style"}:
            # Of a place only the coordinates change.
            if isinstance(old.get(key), dict):
                numbers = dict.fromkeys(("x", "y", "width", "height"))
                assert same({**old[key], **numbers}, {**new[key], **numbers})


def same(one: object, other: object) -> bool:
    """Equal, and also in what Python calls equal and JSON does not: true and 1, 1.0 and 1."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize("kind", sorted(EDITS))
@pytest.mark.parametrize("path", corpus.entries("project_files"), ids=corpus.name)
def test_a_file_that_once_was_misread_is_changed_as_asked_or_kept(file, path, kind):
    for some in (["n-1"], ["n-2", "n-1"]):
        check_change(file, path.read_bytes(), kind, some, 10, 20)


kinds = st.sampled_from(sorted(EDITS))


@given(files, kinds, kinds, st.lists(ids, min_size=1, max_size=4), coordinates, coordinates)
def test_any_file_is_changed_as_asked_or_kept(file, data, kind, next_kind, some, x, y):
    check_change(file, data, kind, some, x, y)
    # Once more, on what was written.
    check_change(file, file.read_bytes().replace(b'"new"', b'"old"'), next_kind, some, y, x)


@given(whole_documents)
@example({"version": 1, "nodes": [{"id": "a", "parentId": "b"}, {"id": "b", "parentId": "a"}]})
def test_a_frame_leaves_every_usable_node_where_it_is(document):
    before = copy.deepcopy(document)
    try:
        frame = model.group(document, "new", ["n-1", "n-2"], "")
    except CtlError:
        assert same(document, before)
        return
    for name in ("n-1", "n-2"):
        old, new = model.find(before, name), model.find(document, name)
        for axis in ("x", "y"):
            was = old["position"].get(axis) if isinstance(old.get("position"), dict) else None
            if type(was) in (int, float) and abs(was) <= model.MAX_COORDINATE:
                assert new["position"][axis] + frame["position"][axis] == pytest.approx(was, abs=1e-3)


@given(whole_documents, st.lists(st.tuples(ids, ids), max_size=3), st.integers(4, 60), st.integers(3, 30))
@example({"nodes": [{"id": "n-1", "position": {"x": 10**400, "y": -(10**400)}}]}, [], 20, 10)
def test_any_nodes_are_drawn(document, links, columns, rows):
    drawn = picture(document["nodes"], {"n-1": "\x1b[2Jvim"}, links, known=True)
    lines = [*text.draw(drawn, columns, rows), *text.legend(drawn, columns)]
    assert "\x1b" not in "".join(lines)
    json.dumps(as_json(drawn), allow_nan=False)
    xml.dom.minidom.parseString(svg.draw(drawn).encode("utf-8"))


def test_five_thousand_nodes_in_one_long_chain_are_changed_like_few(file):
    chain = [{"id": f"n-{number}", "parentId": f"n-{number - 1}", "x": [number]} for number in range(5_000)]
    chain[0]["parentId"] = "n-4999"
    chain[1]["parentId"] = None
    data = json.dumps({"version": 1, "rev": 1, "nodes": chain}).encode()
    for kind in ("group", "remove"):
        check_change(file, data, kind, ["n-1"], 1, 2)
    drawn = picture(chain, {}, [], known=False)
    assert len(drawn.boxes) == 5_000
    assert text.draw(drawn, 80, 24)


@pytest.mark.parametrize("levels", [100, 497, 498, 500, 5000])
def test_nesting_of_any_depth_is_kept_or_refused(file, levels):
    for opening, closing in (("[", "]"), ('{"a":', "}")):
        deep = hostile.nested(levels, opening, closing, "1")
        data = f'{{"version":1,"nodes":[{{"id":"n-1","data":{deep}}}]}}'.encode()
        for kind in ("move", "remove"):
            check_change(file, data, kind, ["n-1"], 1, 2)
