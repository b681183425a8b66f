"""A client that asks for everything at once, before anything has been loaded."""

from __future__ import annotations

import os

import pytest
from support.mcp_app import StandInApp
from support.mcp_client import McpServer
from support.pythons import installed, new_enough

ROUNDS = 8


@pytest.mark.parametrize("version", new_enough(), ids=str)
def test_the_handshake_and_the_list_may_be_the_first_at_the_same_time(ctl, hermetic_env, tmp_path, version):
    # Both ask the app, from threads of their own, and so both import what calls need.
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python3").symlink_to(installed()[version])
    env = {**hermetic_env, "PATH": os.pathsep.join([str(folder), hermetic_env["PATH"]])}
    with StandInApp(tmp_path / "app") as app:
        for _ in range(ROUNDS):
            with McpServer([ctl, "mcp", "--session", app.session], env) as server:
                params = {"protocolVersion": "2025-06-18", "capabilities": {}}
                asked = {server.ask("initialize", params), server.ask("tools/list", {})}
                answers = [server.read(), server.read()]  # in any order
                assert {answer["id"] for answer in answers} == asked
                assert [answer["error"] for answer in answers if "error" in answer] == []
