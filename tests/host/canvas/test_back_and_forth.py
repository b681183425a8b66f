"""A project folder that the app and this host use in turn: no key of either is lost, however often it changes hands."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from termsprawlctl.host.canvas import model, project_file
from termsprawlctl.host.messaging import links

# The app's loader: all of the file is parsed, one thing changed, all of it written in one step.
APP = r"""
const { readFileSync, renameSync, writeFileSync } = require("node:fs");
const path = process.argv[1];
require("node:readline").createInterface({ input: process.stdin }).on("line", (round) => {
  const document = JSON.parse(readFileSync(path, "utf8"));
  document.rev += 1;
  const id = `app-${round}`;
  const kind = "file-output";
  document.nodes.push({ id, type: "whiteboard", position: { x: 1, y: 0 }, strokes: [[1.5, null]], data: {} });
  const config = { kind, path: "x", "": round };
  document.links.push({ id: `l-${round}`, source: id, target: "n-1", kind, config, lastRun: { ok: true } });
  const first = document.nodes.find((each) => each.id === "n-1");
  first.position.x = +round;
  first.selected = !first.selected;
  writeFileSync(`${path}.new`, JSON.stringify(document, null, 2));
  renameSync(`${path}.new`, path);
  console.log("done");
});
"""
ROUNDS = 100
START = {
    "version": 1,
    "viewport": {"x": 0.5, "y": -0.25, "zoom": 1.5},
    "rev": 1,
    "nodes": [
        {"id": "n-1", "type": "sticky", "position": {"x": 0, "y": 60, "z": 1}, "style": {"width": 200, "opacity": 0.5},
         "data": {"kind": "sticky", "text": "é \U0001f389 \\ud83d", "more": [{"deep": [None, True]}]}, "measured": {}},
    ],
    "links": [],
    "unknown": {"": [], "ümlaut": {"a": {"b": {}}}},
}  # fmt: skip


def keys(value: object, where: str = "") -> set[str]:
    """The path of every key and item."""
    if isinstance(value, dict):
        return {where}.union(*(keys(item, f"{where}/{key}") for key, item in value.items()))
    if isinstance(value, list):
        return {where}.union(*(keys(item, f"{where}/{index}") for index, item in enumerate(value)))
    return {where}


@pytest.mark.skipif(not shutil.which("node"), reason="node is not on PATH")
def test_a_folder_changes_hands_a_hundred_times_and_loses_no_key(tmp_path):
    file = tmp_path / ".termsprawl" / "project.json"
    file.parent.mkdir()
    file.write_text(json.dumps(START))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    known = keys(START)
    with subprocess.Popen([str(shutil.which("node")), "-e", APP, str(file)], **pipes) as app:
        for number in range(ROUNDS):
            app.stdin.write(f"{number}\n")
            assert app.stdout.readline() == "done\n"
            _ours(tmp_path, number)
            now = keys(json.loads(file.read_text()))
            assert known <= now
            known = now
        app.stdin.close()
    document = json.loads(file.read_text())
    assert document["rev"] == 1 + 4 * ROUNDS
    assert {key: document[key] for key in ("viewport", "unknown")} == {
        key: START[key] for key in ("viewport", "unknown")
    }
    first = model.find(document, "n-1")
    assert (first["position"], first["data"]) == ({"x": 5, "y": ROUNDS - 1, "z": 1}, START["nodes"][0]["data"])
    assert [one["id"] for one in document["links"] if one["kind"] == "file-output"] == [
        f"l-{number}" for number in range(ROUNDS)
    ]
    assert links.enabled(str(tmp_path)) == {(f"app-{number}", "n-1") for number in range(ROUNDS)}


def _ours(folder: Path, number: int) -> None:
    """A new note, a move and a link, each a change of its own, and one change that changes nothing."""
    for edit in (
        lambda document: model.add_sticky(document, f"ours-{number}", "x"),
        lambda document: model.move(document, "n-1", 5, number),
        lambda document: links._add(document, f"app-{number}", "n-1"),
        lambda document: model.move(document, "n-1", 5, number),
    ):
        project_file.change(str(folder), edit)
