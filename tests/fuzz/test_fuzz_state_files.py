"""The host's own files may hold anything: what is no session, task or link opens nothing, and the host starts."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import types
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support import corpus, hostile
from support.quick_folder import quick_folder
from support.running_host import RunningHost

from termsprawlctl.app import transport
from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.base.text import visible
from termsprawlctl.host.daemon import audit, lock
from termsprawlctl.host.daemon.service import Host
from termsprawlctl.host.launch.adapters import Custom
from termsprawlctl.host.messaging import links
from termsprawlctl.host.messaging.tasks import TaskStore
from termsprawlctl.host.operations.agents import _custom
from termsprawlctl.host.registry.projects import ProjectStore, operator_node, project_id
from termsprawlctl.host.registry.sessions import SessionStore
from termsprawlctl.windows.external import read_preference

TOKEN = "0123456789abcdef" * 4
ids = st.sampled_from(["n-1", "cli-1", "p-1", "", "../n-1", "n-1\0", "x" * 129]) | hostile.any_text
GOOD_SESSION = {"nodeId": "n-good", "projectId": "p-1", "token": TOKEN, "status": {"state": "connected"}}


def texts_of(objects):
    return hostile.encoded(objects.map(hostile.dump)) | hostile.damaged(hostile.encoded(objects.map(hostile.dump)))


sessions = texts_of(
    hostile.objects_with(
        nodeId=hostile.values_beside("n-1"),
        projectId=hostile.values_beside("p-1"),
        token=hostile.values_beside("f" * 64, "\ud800" * 64, "é" * 64, "f" * 31, "f" * 63 + "\n", " " * 64),
        status=hostile.json_values,
    )
)
tasks = texts_of(
    hostile.objects_with(
        id=hostile.values_beside("t-1"),
        state=hostile.values_beside("submitted", "completed", "failed"),
        **{
            name: hostile.values_beside("n-1")
            for name in ("messageId", "projectId", "sourceNodeId", "targetNodeId", "text")
        },
        **dict.fromkeys(("response", "createdAt", "updatedAt"), hostile.json_values),
    )
)
link_files = texts_of(
    hostile.objects_with(version=hostile.values_beside(1), a=ids, b=ids | st.just("n-9")) | hostile.json_objects
)
links_of_projects = (
    st.lists(
        hostile.objects_with(
            kind=hostile.values_beside("context-inject"),
            source=ids,
            target=ids,
            config=hostile.objects_with(agentMessages=hostile.values_beside(True)) | hostile.json_values,
        )
        | hostile.json_values,
        max_size=3,
    )
    | hostile.json_values
)
folders = st.sampled_from(["/", "/etc", ".", "", "/no/such", "/\0", "/\ud800", "~"]) | hostile.json_values
projects = texts_of(hostile.objects_with(cwd=folders))
owners = texts_of(
    hostile.objects_with(
        pid=hostile.values_beside(os.getpid(), os.getppid(), 0, -1, 2**31, 10**30, 1.5, True),
        instanceId=hostile.json_values,
    )
)
endpoints = texts_of(
    hostile.objects_with(
        url=hostile.values_beside("http://127.0.0.1:1/call", "http://127.0.0.1:99999/call", "http://evil.example/call"),
        instanceId=hostile.json_values,
    )
)
words = st.sampled_from(["x", "", " ", "a\0b", "\ud800", "{command}"]) | hostile.json_values
programs = hostile.objects_with(executable=words, args=st.lists(words, max_size=3) | hostile.json_values)
preferences = texts_of(
    hostile.objects_with(
        custom=st.none() | programs | hostile.json_values,
        customAgent=programs | hostile.json_values,
        externalTerminal=programs | hostile.json_values,
    )
)
events = st.lists(
    texts_of(
        hostile.objects_with(
            time=hostile.values_beside("2026-01-02T03:04:05.678Z", "9999-99-99T99:99:99Z", "0001-01-01T00:00:00Z"),
            event=hostile.values_beside("call", "output", "exit", "person", "node-opened", "missed", "host-started"),
            **dict.fromkeys(
                ("node", "caller", "operation", "ok", "ms", "bytes", "what", "outcome"), hostile.json_values
            ),
        )
    )
    | hostile.json_bytes,
    max_size=4,
).map(b"\n".join)


@pytest.fixture(scope="module")
def empty():
    """An own directory of short paths, emptied for every example."""
    with quick_folder("state") as root:
        yield root


def fresh(root: Path) -> DataPaths:
    shutil.rmtree(root)
    paths = DataPaths(str(root / "data"))
    for directory in (paths.sessions, paths.projects, paths.tasks, paths.tmux_sockets, paths.audit):
        os.makedirs(directory, mode=0o700)
    return paths


def put(path: str, data: bytes) -> None:
    with open(path, "wb") as stream:
        stream.write(data)


def content(path: str) -> bytes:
    with open(path, "rb") as stream:
        return stream.read()


@given(sessions | hostile.json_bytes)
@example(json.dumps({"nodeId": "n-1", "projectId": "p-1", "token": "\ud800" * 64}).encode())
def test_a_session_file_of_any_content_opens_nothing_unasked_and_closes_nothing(empty, data):
    paths = fresh(empty)
    put(paths.session("n-1"), data)
    put(paths.session("n-good"), json.dumps(GOOD_SESSION).encode())
    store = SessionStore(paths)
    assert store.find(TOKEN).node_id == "n-good"
    assert store.find("") is None
    assert store.find("\xff" * 64) is None
    for session in store.all():
        assert session.node_id in ("n-1", "n-good")
        assert len(session.token) >= 32
        assert store.find(session.token) is not None
        json.dumps(session.status.as_json())
    assert content(paths.session("n-1")) == data


@given(tasks | hostile.json_bytes)
def test_a_task_file_of_any_content_hurts_no_other_task(empty, data):
    paths = fresh(empty)
    file = os.path.join(paths.tasks, "t-1.json")
    put(file, data)
    store = TaskStore(paths.tasks)
    store.recover()
    read = store.get("t-1")
    assert read is None or read.state in ("completed", "failed")
    if read is None and os.path.exists(file):
        assert content(file) == data
    made = store.create("p-1", "n-2", "n-3", "m-1", "text")
    again = TaskStore(paths.tasks)
    again.recover()
    assert again.get(made.task_id).state == "failed"


@given(link_files | hostile.json_bytes)
def test_a_link_file_of_any_content_joins_only_whom_it_names(empty, data):
    folder = empty / "project"
    fresh(empty)
    directory = folder / ".termsprawl" / "links"
    directory.mkdir(parents=True)
    (directory / "n-1--n-9.json").write_bytes(data)
    (directory / "n-1--n-2.json").write_bytes(b'{"version": 1, "a": "n-1", "b": "n-2"}')
    readable = links.readable(str(folder))
    assert ("n-1", "n-2") in readable
    for pair in readable - {("n-1", "n-2")}:
        assert pair == ("n-1", "n-9") == (json.loads(data)["a"], json.loads(data)["b"])
    assert (directory / "n-1--n-9.json").read_bytes() == data


@given(links_of_projects)
def test_links_of_any_content_in_a_project_let_only_those_send_whom_they_name(empty, found):
    folder = empty / "project"
    fresh(empty)
    (folder / ".termsprawl").mkdir(parents=True)
    path = folder / ".termsprawl" / "project.json"
    path.write_text(json.dumps({"version": 1, "rev": 1, "nodes": [], "links": found}))
    before = path.read_bytes()
    for sender, recipient in links.enabled(str(folder)):
        assert any(
            (one["source"], one["target"], one["config"]["agentMessages"]) == (sender, recipient, True)
            for one in (found if isinstance(found, list) else [])
            if isinstance(one, dict) and one.get("source") == sender and isinstance(one.get("config"), dict)
        )
    assert path.read_bytes() == before


@given(projects | hostile.json_bytes)
def test_a_project_of_any_content_is_a_folder_or_unknown(empty, data):
    paths = fresh(empty)
    put(os.path.join(paths.projects, "p-1.json"), data)
    store = ProjectStore(paths)
    found = store.all()
    assert all(os.path.isdir(folder) for folder in found.values())
    try:
        folder = store.folder("p-1")
    except CtlError:
        folder = None
    assert found.get("p-1") == folder
    good = store.register(str(empty))
    assert store.folder(good) == os.path.realpath(empty)


@given(owners | hostile.json_bytes, endpoints | hostile.json_bytes)
def test_a_lock_of_any_content_belongs_to_a_live_process_or_to_nobody(empty, owner, endpoint):
    paths = fresh(empty)
    for path, data in ((paths.server_lock, owner), (paths.flock, owner), (paths.endpoint, endpoint)):
        put(path, data)
    known = lock.holder(paths)
    assert known is None or (type(known["pid"]) is int and known["pid"] > 0)
    assert not lock.is_held(paths)
    one = lock.ServerLock(paths, "mine")
    try:
        one.acquire()
    except lock.Occupied:
        assert known["pid"] in (os.getppid(), 1)  # it runs, and has had no time to write its endpoint
        assert content(paths.server_lock) == owner
        assert content(paths.endpoint) == endpoint
        return
    one.publish("http://127.0.0.1:1/call")
    assert one.is_ours()
    one.release()
    assert not os.path.exists(paths.endpoint)


@given(preferences | hostile.json_bytes)
@example(b'{"customAgent": {"executable": "x", "args": ["a\\u0000b"]}}')
@example(b'{"customAgent": {"executable": "x", "args": ["\\ud800"]}}')
@example(b'{"externalTerminal": {"executable": "x", "args": ["{command}", "\\ud800"]}}')
def test_preferences_of_any_content_give_a_command_line_or_a_clear_refusal(empty, data):
    paths = fresh(empty)
    put(paths.preferences, data)
    host = types.SimpleNamespace(paths=paths)
    host.preferences = lambda: Host.preferences(host)
    for read in (lambda: _custom(host), lambda: read_preference(paths.preferences)):
        try:
            found, refused = read(), ""
        except CtlError as no:
            found, refused = None, str(no)
        assert not refused or "preferences" in refused
        if isinstance(found, Custom):
            argv = [*found.command, found.instruction_flag]
        else:
            argv = [found.executable, *found.args] if found else []
        assert all(b"\0" not in word.encode() for word in argv)
    assert content(paths.preferences) == data


@given(events | hostile.binary)
def test_a_log_of_any_content_reads_as_one_line_an_event(empty, data):
    paths = fresh(empty)
    put(os.path.join(paths.audit, "events-00000001.jsonl"), data)
    for event in audit.past(paths.audit):
        line = audit.describe(event)
        assert visible(line) == " ".join(filter(None, line.split(" ")))
        assert "  " in line
    put(os.path.join(paths.audit, "events-00000001.jsonl"), data + b"\n")
    follower = audit.Follower(paths.audit)
    log = audit.Audit(paths.audit)
    log.event("exit", node="n-1")
    log.close()
    assert [event["node"] for event in follower.read()] == ["n-1"]


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo], ids=["directory", "fifo"])
def test_what_stands_in_the_logs_place_and_is_no_file_holds_up_nobody(empty, make):
    paths = fresh(empty)
    make(os.path.join(paths.audit, "events-00000001.jsonl"))
    log = audit.Audit(paths.audit)
    log.event("exit", node="n-1")
    log.close()
    before = len(os.listdir("/proc/self/fd"))
    assert audit.past(paths.audit) == []
    assert audit.Follower(paths.audit).read() == []
    assert len(os.listdir("/proc/self/fd")) == before


@given(
    hostile.binary
    | hostile.encoded(hostile.any_text)
    | st.sampled_from([b"/tmp/x\n", b"/\0", b"x", b"\n/x", b"/x" * 4000])
)
def test_the_pointer_to_a_socket_is_an_absolute_path_or_none(empty, data):
    paths = fresh(empty)
    usual = paths.tmux_socket()
    put(paths.tmux_socket_pointer, data)
    socket = paths.tmux_socket()
    assert os.path.isabs(socket)
    assert "\0" not in socket
    assert socket == usual or os.fsencode(socket) == data.partition(b"\n")[0]


# --- a real host on all of them at once ------------------------------------------------------

# file below the data directory, or below the project's folder: what may stand in it
FILES = {
    "data/agent-tools/sessions/n-1.json": sessions,
    "data/agent-tools/sessions/.n-2.json": sessions,
    "data/agent-tools/tasks/t-1.json": tasks,
    "data/agent-tools/projects/p-1.json": projects,
    "data/agent-tools/preferences.json": preferences,
    "data/agent-tools/endpoint.json": endpoints,
    "data/agent-tools/host.flock": owners,
    "data/audit/events-00000001.jsonl": events,
    "data/tmux-sockets/termsprawl.path": hostile.binary,
    "data/tmux.conf": hostile.binary,
    "project/.termsprawl/links/any.json": link_files,
    "project/.termsprawl/project.json": hostile.json_bytes
    | st.builds(
        lambda node: json.dumps({"version": 1, "nodes": [{**node, "id": "n-1"}, node]}).encode(),
        hostile.objects_with(type=st.just("terminal"), data=hostile.json_values),
    ),
}
# Nobody but people and the app writes these, nor what is no session.
NEVER_WRITTEN = [
    *("data/agent-tools/sessions/n-1.json", "data/agent-tools/projects/p-1.json", "data/agent-tools/preferences.json"),
    *("project/.termsprawl/links/any.json", "project/.termsprawl/project.json"),
]


def start_on(ctl: str, env: dict, root: Path, files: dict[str, bytes]) -> None:
    """Start a host on a directory with these files; it has to serve, and to keep what is not its own."""
    host = RunningHost(ctl, root, {**env, "HOME": str(root), "SHELL": "/bin/sh"})
    # What stands there is about this very project and its person.
    identity = project_id(str(host.project))
    names = ((b'"p-1"', json.dumps(identity)), (b'"cli-1"', json.dumps(operator_node(identity))))
    for old, new in names:
        files = {name: data.replace(old, new.encode()) for name, data in files.items()}
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.write_bytes(data)
    kept = set(NEVER_WRITTEN) & set(files)
    if SessionStore(DataPaths(str(host.data))).all():
        kept.discard("data/agent-tools/sessions/n-1.json")
    try:
        host.start()
        for operation in (
            "session_info",
            "agent_status",
            "agent_cards",
            "context_read",
            "canvas_list",
            "terminal_open",
        ):
            result = transport.call(host.session_file, operation)
            assert result["ok"] or "project" in result["error"], result
        log = (host.data / "host.log").read_text(errors="replace")
        assert "internal error" not in log
        assert host.token() not in log
        for word in ("links", "log"):
            done = host.run("host", word, "--data", str(host.data))
            assert done.returncode == 0, done.stderr
            assert b"internal error" not in done.stderr
        for name in kept:
            if name != "project/.termsprawl/project.json" or not transport.call(host.session_file, "canvas_list")["ok"]:
                assert (root / name).read_bytes() == files[name], name
    finally:
        stopped = host.stop("--kill-sessions")
        assert stopped.returncode == 0, stopped.stderr


def test_a_host_starts_on_files_that_once_stopped_it(ctl, hermetic_env, tmp_path_factory):
    """Each entry is a JSON object: file to its content. No file is in two of them: one start is enough for all."""
    files: dict[str, bytes] = {}
    for path in corpus.entries("state_files"):
        for name, text in json.loads(path.read_bytes()).items():
            assert name not in files
            files[name] = text.encode("utf-8", "surrogatepass")
    start_on(ctl, hermetic_env, tmp_path_factory.mktemp("s"), files)


@settings(max_examples=max(1, settings.default.max_examples // 30))  # each starts a host
@given(st.fixed_dictionaries({}, optional=FILES))
def test_a_host_starts_on_any_files(ctl, hermetic_env, empty, files):
    name = hashlib.sha256(repr(sorted(files.items())).encode()).hexdigest()[:8]
    root = empty / name
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir()
    start_on(ctl, hermetic_env, root, files)
