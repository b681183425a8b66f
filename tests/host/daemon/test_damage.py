"""What lies damaged in a host's folders: left as it is, named once in the log, and the rest works."""

from __future__ import annotations

import json

# Over the width of what a file can be that is none.
DAMAGED = {
    "empty": b"",
    "cut": b'{"version": 1, "rev": 1, "nodes": [{"id": "n-1"',
    "array": b"[]",
    "number": b"1",
    "null": b"null",
    "no-text": b"\xff\xfe\0",
    "binary": bytes(range(256)),
    "deep": b"[" * 100_000,
    "nothing-in-it": b"{}",
    "newer": b'{"version": 2, "id": "newer", "nodes": []}',
    "wrong-types": b'{"version": "1", "id": ["wrong-types"], "text": 1, "state": null, "nodes": {}}',
    "unknown-state": json.dumps(
        {
            "id": "unknown-state",
            **dict.fromkeys(("projectId", "sourceNodeId", "targetNodeId", "messageId", "text"), "x"),
            "state": "nonsense",
        }
    ).encode(),
    "of-another-name": b'{"id": "other", "state": "completed"}',
}


def log_of(host) -> str:
    return (host.data / "host.log").read_text()


def test_damaged_tasks_stay_as_they_are_and_the_others_can_be_read(host):
    me = host.value("session_info")
    assert host.stop().returncode == 0
    folder = host.data / "agent-tools" / "tasks"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, content in DAMAGED.items():
        (folder / f"{name}.json").write_bytes(content)
    good = {
        "id": "good",
        "projectId": me["projectId"],
        "sourceNodeId": me["nodeId"],
        "targetNodeId": "n-1",
        "messageId": "m-1",
        "text": "do it",
        "state": "completed",
        "createdAt": 4_000_000_000_000,
        "updatedAt": 4_000_000_000_000,
        "response": "done",
    }
    (folder / "good.json").write_text(json.dumps(good))
    host.start()
    assert host.value("agent_task", taskId="good") == good
    for name, content in DAMAGED.items():
        assert (folder / f"{name}.json").read_bytes() == content
        assert log_of(host).count(f"{name}.json among the tasks is no task; it is left as it is") == 1
    assert "good.json among" not in log_of(host)


def test_damaged_project_files_stay_as_they_are_and_the_other_projects_work(host, tmp_path):
    sessions, paths = {}, {}
    for name, content in DAMAGED.items():
        project = tmp_path / name
        (project / ".termsprawl").mkdir(parents=True)
        paths[name] = project / ".termsprawl" / "project.json"
        sessions[name] = host.start(project)
        paths[name].write_bytes(content)
    assert host.stop().returncode == 0
    host.start()
    node = host.value("terminal_open")["nodeId"]
    for name, session in sessions.items():
        answers = [
            host.call("canvas_list", session),
            host.call("sticky_open", session, text="x"),
            host.call("terminal_open", session),
        ]
        assert {answer["ok"] for answer in answers} == {False}, name
        assert all("project" in answer["error"] for answer in answers), answers
        assert paths[name].read_bytes() == DAMAGED[name]
        assert host.value("session_info", session)["projectFolder"] == str(tmp_path / name)
        assert log_of(host).count(f"the project in {tmp_path / name} cannot be looked at") == 1
    assert [one["id"] for one in host.value("canvas_list")] == [node]
    # A terminal that runs goes on with what became of its project's file.
    mine = host.project / ".termsprawl" / "project.json"
    mine.write_bytes(b"{")
    assert host.value("terminal_run", nodeId=node, command="echo on")["output"] == "on"
    assert mine.read_bytes() == b"{"
