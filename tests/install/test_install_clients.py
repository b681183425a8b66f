"""The real clients list the server as connected after `install --write` in a home of its own."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
from support import counterparts

pytestmark = pytest.mark.counterpart

PROGRAMS = {
    "claude": ("@anthropic-ai/claude-code", "claude"),
    "codex": ("@openai/codex", "codex"),
    "gemini": ("@google/gemini-cli", "gemini"),
    "opencode": ("opencode-ai", "opencode"),
}
CONNECTED = {"claude": "✔ Connected", "codex": "enabled", "gemini": "- Connected", "opencode": "✓ termsprawl connected"}


@pytest.fixture
def with_client(home, tmp_path):
    """Put a client on the PATH of the home."""

    def use(client: str) -> None:
        folder = tmp_path / "bin"
        folder.mkdir()
        program = counterparts.program(*PROGRAMS[client])
        (folder / client).write_text(
            f'#!/bin/sh\nPATH={counterparts.path_with_node()} exec {program} "$@"\n', encoding="utf-8"
        )
        (folder / client).chmod(0o755)
        home.env["PATH"] = os.pathsep.join([str(folder), home.env["PATH"]])

    return use


@pytest.mark.parametrize("client", list(PROGRAMS))
def test_the_client_lists_the_server_as_connected(home, with_client, client):
    with_client(client)
    # Gemini starts servers in trusted folders only.
    home.put(".gemini/settings.json", '{"security": {"folderTrust": {"enabled": false}}}')
    facts = home.facts(client, "--write")
    assert facts["verified"] == {"server": "termsprawl 1.0.0", "tools": 32}
    assert CONNECTED[client] in facts["listed"], facts
    assert home.session in facts["listed"] or client == "opencode"
    home.uninstall(client, "--write")
    assert home.facts(client)["action"] == "add"


@pytest.mark.parametrize("client", ["claude", "codex", "gemini"])
def test_the_clients_own_command_writes_the_same(home, with_client, client):
    with_client(client)
    words = ["--server", "agent:codex", "--env", "A=b c", "--json", "--", "--cwd", "/tmp/a b", "--", "-s", "x"]
    facts = json.loads(home.install(client, *words).stdout)
    subprocess.run(facts["ownCommand"], env=home.env, cwd=home.project, check=True, capture_output=True, timeout=60)
    assert json.loads(home.install(client, *words).stdout)["action"] == "keep"
