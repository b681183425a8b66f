"""Links of earlier versions are turned into the app's once; a file that is no link stays as it is."""

from __future__ import annotations

import json

import pytest

from termsprawlctl.host.canvas import project_file
from termsprawlctl.host.messaging import links


@pytest.fixture
def directory(tmp_path):
    path = tmp_path / ".termsprawl" / "links"
    path.mkdir(parents=True)
    return path


def test_links_of_earlier_versions_move_to_both_places_of_the_app_once(tmp_path, directory):
    (directory / "link-1.json").write_text('{"from": "n-2", "to": "n-1", "enabled": true}')
    (directory / "link-2.json").write_text('{"from": "n-1", "to": "n-3", "enabled": false}')
    (directory / "n-4--n-5.json").write_text('{"version": 1, "a": "n-4", "b": "n-5"}')
    assert links.migrate(str(tmp_path)) == [("n-2", "n-1")]
    assert links.enabled(str(tmp_path)) == {("n-2", "n-1")}
    assert links.readable(str(tmp_path)) == {("n-1", "n-2"), ("n-4", "n-5")}
    assert sorted(path.name for path in directory.iterdir()) == ["n-1--n-2.json", "n-4--n-5.json"]
    (link,) = project_file.load(str(tmp_path))["links"]
    assert link["config"] == {
        "kind": "context-inject",
        "wrapper": False,
        "pastePointer": False,
        "agentMessages": True,
    }
    before = project_file.path_of(str(tmp_path))
    with open(before, "rb") as stream:
        content = stream.read()
    assert links.migrate(str(tmp_path)) == []
    with open(before, "rb") as stream:
        assert stream.read() == content


DAMAGED = {
    "empty": b"",
    "cut": b'{"from": "n-1", "to"',
    "no object": b"[]",
    "no ids": b'{"from": 1, "to": null, "enabled": true}',
    "a path as id": b'{"from": "../x", "to": "n-1", "enabled": true, "version": 1, "a": "../x", "b": "n-1"}',
    "no text": b"\xff\xfe\0",
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_link_stays_as_it_is_and_the_others_work(tmp_path, directory, content):
    for name in ("link-0.json", "n-8--n-9.json"):
        (directory / name).write_bytes(content)
    (directory / "link-1.json").write_text(json.dumps({"from": "n-1", "to": "n-2", "enabled": True}))
    assert links.migrate(str(tmp_path)) == [("n-1", "n-2")]
    assert links.readable(str(tmp_path)) == {("n-1", "n-2")}
    assert links.damaged(str(tmp_path)) == ["link-0.json", "n-8--n-9.json"]
    for name in ("link-0.json", "n-8--n-9.json"):
        assert (directory / name).read_bytes() == content
