"""A project folder that somebody else made: nothing in it runs, is changed elsewhere, or speaks for the user."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from support.mcp_app import StandInApp
from support.running_host import RunningHost

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.layout import DataPaths
from termsprawlctl.host.canvas import project_file
from termsprawlctl.host.messaging import links
from termsprawlctl.host.registry.projects import ProjectStore
from termsprawlctl.host.registry.sessions import SessionStore
from termsprawlctl.host.registry.status import SHELL_STATUS

# Whatever reads it as more than a name (tmux's formats, a shell, options) would leave a file behind.
NAME = """-x #(touch ran) $(touch ran) `touch ran`;touch ran;'; touch ran; '"; touch ran; " #{S:x} %H ##"""


def install(ctl, tmp_path, env, folder, *words):
    with StandInApp(tmp_path / "app") as app:
        return subprocess.run(
            [ctl, "install", *words, "--session", str(app.session)],
            env={**env, "HOME": str(tmp_path)},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )


def test_a_folders_name_is_never_run(ctl, tmp_path_factory, hermetic_env):
    root = tmp_path_factory.mktemp("p")
    folder = root / "place" / NAME
    folder.mkdir(parents=True)
    env = {**hermetic_env, "HOME": str(root), "SHELL": "/bin/bash"}
    running = RunningHost(ctl, root, env)
    running.data = folder / "d"
    try:
        running.start(folder)
        node = running.value("terminal_open", title=NAME)["nodeId"]
        answer = running.value("terminal_run", nodeId=node, command="pwd; ls -A")
        running.value("sticky_open", text=NAME)
        assert running.run("map", "--session", running.session_file).returncode == 0
    finally:
        running.stop("--kill-sessions")
    assert answer["output"].split("\n")[0] == str(folder)
    assert not list(root.rglob("ran*"))


def test_a_canvas_that_came_with_a_project_starts_nothing(host):
    planted = host.project / ".termsprawl"
    shutil.rmtree(planted, ignore_errors=True)
    planted.mkdir()
    node = {
        "id": "n-planted",
        "type": "terminal",
        "position": {"x": 0, "y": 0},
        "data": {"kind": "terminal", "title": "t", "cwd": "/", "command": "touch ran"},
    }
    config = {"kind": "context-inject", "agentMessages": True}
    link = {"id": "l", "kind": "context-inject", "source": "n-planted", "target": "n-planted", "config": config}
    (planted / "project.json").write_text(json.dumps({"version": 1, "rev": 1, "nodes": [node], "links": [link]}))
    (planted / "links").mkdir()
    (planted / "links" / "link-0.json").write_text('{"from": "n-planted", "to": "n-2", "enabled": true}')
    host.stop()
    host.start()
    assert [one["id"] for one in host.value("canvas_list")] == ["n-planted"]
    for operation, extra in (("terminal_read", {}), ("terminal_submit", {"command": "x"}), ("terminal_close", {})):
        assert "run by another program" in host.call(operation, nodeId="n-planted", **extra)["error"]
    assert host.value("agent_cards") == []
    assert host.tmux("list-sessions").returncode != 0
    assert not list(host.project.rglob("ran"))


@pytest.mark.parametrize("planted", ["file", "folder"])
def test_a_canvas_that_leads_out_of_its_project_has_nothing_changed_there(tmp_path, planted):
    outside, folder = tmp_path / "outside", tmp_path / "project"
    outside.mkdir()
    folder.mkdir()
    content = json.dumps({"version": 1, "rev": 1, "nodes": []})
    (outside / "project.json").write_text(content)
    if planted == "folder":
        (folder / ".termsprawl").symlink_to(outside)
    else:
        (folder / ".termsprawl").mkdir()
        (folder / ".termsprawl" / "project.json").symlink_to(outside / "project.json")
    with pytest.raises(CtlError, match="leads out of the project"):
        project_file.change(str(folder), lambda document: document["nodes"].append({"id": "n"}))
    with pytest.raises(CtlError, match="leads out of the project"):
        project_file.load(str(folder))
    assert os.listdir(outside) == ["project.json"]
    assert (outside / "project.json").read_text() == content


def test_links_between_agents_are_not_written_out_of_the_project(tmp_path):
    folder, outside, paths = tmp_path / "project", tmp_path / "outside", DataPaths(str(tmp_path / "data"))
    (folder / ".termsprawl").mkdir(parents=True)
    outside.mkdir()
    (folder / ".termsprawl" / "links").symlink_to(outside)
    project = ProjectStore(paths).register(str(folder))
    for node in ("n-1", "n-2"):
        SessionStore(paths).provision(node, project, SHELL_STATUS)
    with pytest.raises(CtlError, match="leads out of the project"):
        links.link_context(paths, "n-1", "n-2")
    assert os.listdir(outside) == []
    (folder / ".termsprawl" / "project.json").symlink_to(outside / "project.json")
    with pytest.raises(CtlError, match=r"is a link to nothing|leads out of the project"):
        links.link(paths, "n-1", "n-2")
    assert os.listdir(outside) == []


def test_variables_that_came_with_a_project_do_not_decide_how_the_installed_server_is_tried(
    ctl, tmp_path, hermetic_env
):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "bin").mkdir()
    (folder / "bin" / "python3").write_text("#!/bin/sh\ntouch ran\n")
    (folder / "bin" / "python3").chmod(0o755)
    entry = {"command": "/nowhere/termsprawlctl", "args": ["mcp"], "env": {"PATH": f"{folder}/bin:/usr/bin:/bin"}}
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": {"termsprawl": entry}}))
    done = install(ctl, tmp_path, hermetic_env, folder, "claude", "--scope", "project", "--write", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["verified"]["tools"] > 0
    assert not list(tmp_path.rglob("ran"))
    done = install(ctl, tmp_path, hermetic_env, folder, "claude", "--scope", "project", "--write")
    assert "the entry also sets PATH" in done.stderr


def test_a_link_of_a_project_does_not_have_another_configuration_changed(ctl, tmp_path, hermetic_env):
    folder = tmp_path / "project"
    folder.mkdir()
    (tmp_path / "other.json").write_text("{}")
    (folder / ".mcp.json").symlink_to(tmp_path / "other.json")
    done = install(ctl, tmp_path, hermetic_env, folder, "claude", "--scope", "project", "--write")
    assert (done.returncode, "leads out of the project" in done.stderr) == (1, True)
    assert (tmp_path / "other.json").read_text() == "{}"


def test_a_client_that_is_asked_for_its_list_is_not_asked_in_the_project(ctl, tmp_path, hermetic_env):
    folder, bins = tmp_path / "project", tmp_path / "bin"
    folder.mkdir()
    bins.mkdir()
    (bins / "claude").write_text("#!/bin/sh\necho termsprawl in $(pwd)\n")
    (bins / "claude").chmod(0o755)
    env = {**hermetic_env, "PATH": f"{bins}{os.pathsep}{hermetic_env['PATH']}"}
    done = install(ctl, tmp_path, env, folder, "claude", "--write", "--json")
    assert json.loads(done.stdout)["listed"] == f"termsprawl in {Path(tmp_path)}"
