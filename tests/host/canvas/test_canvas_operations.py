"""The canvas operations of a running host."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest
from support.waiting import until

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.canvas import artifacts


def project_file(host) -> Path:
    return host.project / ".termsprawl" / "project.json"


def rev_of(host) -> int:
    return json.loads(project_file(host).read_text())["rev"]


def nodes(host) -> dict:
    return {node["id"]: node for node in host.value("canvas_list")}


def test_notes_are_placed_moved_resized_selected_and_framed(host):
    first = host.value("sticky_open", text="plan: 1. ü\n2. 🎉")["nodeId"]
    second = host.value("sticky_open", text="")["nodeId"]
    assert nodes(host)[first]["data"] == {
        "kind": "sticky",
        "text": "plan: 1. ü\n2. 🎉",
        "color": "amber",
        "collapsed": False,
    }
    moved = host.value("canvas_move", nodeId=first, x=-100, y=2.5)
    assert moved == {"nodeId": first, "position": {"x": -100, "y": 2.5}}
    sized = host.value("canvas_resize", nodeId=first, width=240, height=500)
    assert sized == {"nodeId": first, "style": {"width": 240, "height": 500}}
    assert host.value("canvas_select", nodeIds=[first, second]) == {"nodeIds": [first, second]}
    host.value("canvas_select", nodeIds=[second])
    group = host.value("canvas_group", nodeIds=[first, second], title="Notes")["nodeId"]
    found = nodes(host)
    assert list(found) == [group, first, second]
    assert found[group]["data"] == {"kind": "group", "title": "Notes"}
    assert [found[one].get("selected") for one in (group, first, second)] == [None, None, None]
    assert found[first]["parentId"] == found[second]["parentId"] == group
    again = host.call("canvas_group", nodeIds=[first])
    assert again["error"].startswith(f"Node {first} is in a group already. Only top-level nodes")
    rev = rev_of(host)
    assert rev == 5
    host.value("canvas_move", nodeId=group, x=0, y=0)
    host.value("canvas_move", nodeId=group, x=0, y=0)
    assert rev_of(host) == rev + 1
    for operation, args in (
        ("canvas_move", {"nodeId": "zz", "x": 0, "y": 0}),
        ("canvas_resize", {"nodeId": "zz", "width": 1, "height": 1}),
        ("canvas_select", {"nodeIds": ["zz"]}),
        ("canvas_group", {"nodeIds": ["zz"]}),
    ):
        assert host.call(operation, **args)["error"].startswith("Unknown node: zz. canvas_list")
    assert rev_of(host) == rev + 1


def test_a_terminal_that_has_ended_says_so_also_to_the_next_host_and_the_file_stays_as_it_is(host):
    lives, ends = (host.value("terminal_open")["nodeId"] for _ in range(2))
    assert [node.get("ended") for node in host.value("canvas_list")] == [None, None]
    before = project_file(host).read_bytes()
    host.value("terminal_submit", nodeId=ends, command="exit")
    until(lambda: "ended" in nodes(host)[ends], "the mark")
    assert nodes(host)[ends]["ended"] is True
    assert "ended" not in nodes(host)[lives]
    host.stop()
    host.tmux("kill-session", "-t", f"=ts-{lives}")  # while nobody looks
    host.start()
    assert [node.get("ended") for node in host.value("canvas_list")] == [True, True]
    assert project_file(host).read_bytes() == before
    again = host.value("terminal_open")["nodeId"]
    assert "ended" not in nodes(host)[again]
    host.value("terminal_close", nodeId=ends)
    assert ends not in nodes(host)


def test_two_hosts_and_the_app_change_one_canvas_and_nothing_is_lost(host, ctl, tmp_path_factory):
    from support.running_host import RunningHost

    other = RunningHost(ctl, tmp_path_factory.mktemp("o"), host.env)
    other.project = host.project
    other.start()
    try:
        made: list[str] = []

        def write(one) -> None:
            made.extend(one.value("sticky_open", text=str(number))["nodeId"] for number in range(8))

        threads = [threading.Thread(target=write, args=(one,)) for one in (host, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        content = json.loads(project_file(host).read_text())
        assert content["rev"] == 16
        assert sorted(node["id"] for node in content["nodes"]) == sorted(made)
        # The app removes one, adds its own and knows a key that this host does not.
        content["nodes"][0] = {"id": "app-1", "type": "sticky", "flag": True}
        project_file(host).write_text(json.dumps({**content, "rev": 40}))
        host.value("canvas_move", nodeId="app-1", x=1, y=1)
        assert rev_of(other) == 41
        assert nodes(other)["app-1"] == {"id": "app-1", "type": "sticky", "flag": True, "position": {"x": 1, "y": 1}}
    finally:
        other.stop("--kill-sessions")


def test_a_closed_terminal_leaves_its_group_and_its_neighbours(host):
    terminal = host.value("terminal_open")["nodeId"]
    note = host.value("sticky_open", text="x")["nodeId"]
    group = host.value("canvas_group", nodeIds=[terminal, note])["nodeId"]
    host.value("terminal_close", nodeId=terminal)
    assert list(nodes(host)) == [group, note]
    assert host.call("terminal_close", nodeId=note)["error"] == (
        f"Node {note} is not a terminal. canvas_list tells the type of each node."
    )


def test_files_open_as_editor_and_diff_with_their_real_path(host):
    (host.project / "docs").mkdir()
    plan = host.project / "docs" / "plan ü.md"
    plan.write_text("# Plan")
    (host.project / "link.md").symlink_to(plan)
    editor = host.value("artifact_open", path=str(host.project / "link.md"))
    diff = host.value("artifact_open", path=str(plan), view="diff")
    assert editor["path"] == diff["path"] == os.path.realpath(plan)
    found = nodes(host)
    assert found[editor["nodeId"]]["data"] == {"kind": "editor", "path": editor["path"], "preview": False}
    assert found[diff["nodeId"]]["data"] == {"kind": "diff", "path": editor["path"], "base": "HEAD"}
    before = project_file(host).read_bytes()
    assert "is outside the project" in host.call("artifact_open", path="/etc/passwd")["error"]
    assert "not an absolute path" in host.call("artifact_open", path="docs/plan ü.md")["error"]
    assert project_file(host).read_bytes() == before


@pytest.fixture
def folder(tmp_path) -> Path:
    """A project's folder with a neighbour whose name begins like its own."""
    (tmp_path / "project").mkdir()
    (tmp_path / "project-2").mkdir()
    (tmp_path / "project-2" / "secret").write_text("secret")
    return tmp_path / "project"


@pytest.mark.parametrize(
    ("name", "make", "error"),
    [
        ("out", lambda p: p.symlink_to(p.parent.parent / "project-2" / "secret"), "is outside the project"),
        ("up", lambda p: p.symlink_to(p.parent.parent / "project-2"), "is outside the project"),
        ("../project-2/secret", lambda p: None, "is outside the project"),
        ("../project/../project-2/secret", lambda p: None, "is outside the project"),
        ("", lambda p: None, "it is a directory"),
        ("gone", lambda p: None, "No such file or directory"),
        ("dangling", lambda p: p.symlink_to("nothing"), "No such file or directory"),
        ("circle", lambda p: p.symlink_to("circle"), "Too many levels of symbolic links"),
        ("directory", lambda p: p.mkdir(), "it is a directory"),
        ("pipe", os.mkfifo, "not a regular file"),
        ("zero", lambda p: p.write_bytes(b"text\0more"), "is neither text"),
        ("data", lambda p: p.write_bytes(b"\x7fELF\0\0"), "is neither text"),
        ("latin", lambda p: p.write_bytes(b"gr\xfc\xdfe"), "is neither text"),
        ("cut", lambda p: p.write_bytes("ü".encode()[:1]), "is neither text"),
        ("late", lambda p: p.write_bytes(b"a" * 60_000 + b"\xff" * 60_000), "is neither text"),
        ("\udcff", lambda p: p.write_bytes(b""), "not UTF-8"),
        ("\ud800", lambda p: None, "not UTF-8"),
        ("x" * 5000, lambda p: None, "File name too long"),
    ],
)
def test_what_is_no_text_file_of_the_project_is_refused(folder, name, make, error):
    make(folder / name)
    with pytest.raises(CtlError, match=error):
        artifacts.resolve(f"{folder}/{name}", str(folder), as_diff=False)


@pytest.mark.parametrize(
    "content", [b"", b"a\n", "日本\n".encode(), b"\xef\xbb\xbfbom", "ü".encode() * 40_000, b"x" + "ü".encode() * 40_000]
)
def test_text_of_any_length_is_shown(folder, content):
    path = folder / "file"
    path.write_bytes(content)
    assert artifacts.resolve(str(path), str(folder), as_diff=False) == str(path)


def test_a_project_that_is_reached_through_a_link_is_the_same_project(folder, tmp_path):
    (folder / "file").write_text("x")
    (tmp_path / "alias").symlink_to(folder)
    assert artifacts.resolve(str(tmp_path / "alias" / "file"), str(folder), as_diff=False) == str(folder / "file")
    assert artifacts.resolve(str(folder / "file"), str(tmp_path / "alias"), as_diff=False) == str(folder / "file")


@pytest.mark.parametrize(
    "content",
    [
        b"\x89PNG\r\n\x1a\n\0",
        b"\xff\xd8\xff\xe0\0",
        b"GIF89a\0\xff",
        b"RIFF\x10\0\0\0WEBPVP8 \xff",
        b"BM\x10\0\0\0\0\0\0\0\x36\0\0\0\xff",
        b"\0\0\1\0\1\0",
        b'<?xml version="1.0"?>\n<svg xmlns="x"/>',
    ],
    ids=["png", "jpg", "gif", "webp", "bmp", "ico", "svg"],
)
def test_an_image_is_known_by_its_content_and_shown_but_not_as_a_diff(folder, content):
    path = folder / "no-suffix"
    path.write_bytes(content)
    assert artifacts.resolve(str(path), str(folder), as_diff=False) == str(path)
    if not content.startswith(b"<"):  # which is text as well
        with pytest.raises(CtlError, match="is neither text"):
            artifacts.resolve(str(path), str(folder), as_diff=True)
