"""The real clients with what `install --server tui --name work --allow` wrote: they switch a real tmux unasked."""

from __future__ import annotations

import json
import subprocess
import uuid

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider

pytestmark = pytest.mark.counterpart

NAME = "work"
# Runs that ask for permission, and refuse it as nobody is there to ask.
ASKING = {
    "codex": lambda words: ["read-only" if word == "danger-full-access" else word for word in words],
    "opencode": lambda words: [word for word in words if word != "--auto"],
    "claude": lambda words: ["default" if word == "bypassPermissions" else word for word in words],
    "gemini": lambda words: ["default" if word == "yolo" else word for word in words],
}


def script(members: dict, revision: int, session_id: str) -> dict:
    select = {
        "requestId": str(uuid.uuid4()),
        "instanceId": members["instanceId"],
        "generation": members["generation"],
        "expectedRevision": revision,
        "sessionId": session_id,
    }
    calls = [("get_view_context", {}), ("select_session", select)]
    return {
        "turns": [
            *({"calls": [{"mcp": NAME, "tool": tool, "args": args}]} for tool, args in calls),
            {"text": "It is shown."},
        ]
    }


def have_it_ask(cli) -> None:
    """What a user writes down who wants to be asked, where a client would not ask for these tools by itself."""
    if cli.program == "opencode":
        content = json.loads(cli.env["OPENCODE_CONFIG_CONTENT"])
        del content["mcp"]
        cli.env["OPENCODE_CONFIG_CONTENT"] = json.dumps(content)
        folder = cli.home / ".config" / "opencode"
        folder.mkdir(parents=True)
        (folder / "opencode.json").write_text('{"permission": {"*": "ask"}}')
    if cli.program == "codex":
        with (cli.home / ".codex" / "config.toml").open("a") as file:
            file.write(
                f'[mcp_servers.{NAME}]\ndefault_tools_approval_mode = "prompt"\ncommand = "{cli.ctl}"\nargs = ["mcp"]\n'
            )


@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "asking"])
@pytest.mark.parametrize("name", agent_clis.ALL)
def test_a_client_switches_the_shared_tmux_unasked_once_it_is_allowed(
    ctl, tmux, client, start, ids, hermetic_env, tmp_path, name, allowed
):
    data = {"TERMSPRAWL_DATA": str(tmp_path / "d")}
    share = start("--name", NAME, **data)
    with FakeProvider(script(share.members, share.quiet_context()["revision"], ids()["two"])) as provider:
        cli = agent_clis.ALL[name](tmp_path / "agent", hermetic_env, provider.url, None)
        cli.ctl = ctl
        have_it_ask(cli)
        words = [ctl, "install", name, "--server", "tui", "--name", NAME, "--write", "--no-verify"]
        env = {**cli.env, **data, "PATH": hermetic_env["PATH"]}
        done = subprocess.run([*words, *["--allow"] * allowed], env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        usual = cli.words()
        cli.words = lambda: ASKING[name](usual)
        done = cli.run()
    shown = f"{done.stdout.decode()}\n{done.stderr.decode()}\n{''.join(share.out + share.err)}"
    assert tmux.session_of(client) == ("two" if allowed else "one"), shown
