"""Every token, looked for wherever something of the machine could have kept it: it stands in its own file alone."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
from pathlib import Path

import pytest
from support.chosen import plain_path
from support.mcp_client import McpServer
from support.running_host import RunningHost
from support.scripted_agent import PRELUDE
from support.tui_share import RunningShare
from support.tui_tmux import Prepared

AGENT = """\
#!/bin/sh
case $1 in --help) printf '%s\\n' '--mcp-config --append-system-prompt --config mcp opencode'; exit 0 ;; esac
printf ' <%s>' "$@"; env; "$TERMSPRAWL_CTL" call session_info --field value.nodeId; echo launched; exec cat
"""


class Machine:
    """A user's whole machine below one directory: host, agents, bridge, share and agent server, all running."""

    def __init__(self, ctl: str, root: Path, env: dict) -> None:
        self.ctl, self.root = ctl, root
        self.outputs: dict[str, bytes] = {}
        for name in ("bin", "tmp", "run"):
            (root / name).mkdir(mode=0o700)
        for name in ("claude", "opencode"):
            self._program(name, AGENT)
        self._program("codex", f"#!{env['PYTHON']} -IS\n{PRELUDE}begin()\nend('done')\ntime.sleep(1000)\n")
        self.env = {
            "PATH": f"{root / 'bin'}{os.pathsep}{env['PATH']}",
            "HOME": str(root),
            "SHELL": "/bin/bash",
            "TMPDIR": str(root / "tmp"),
            "XDG_RUNTIME_DIR": str(root / "run"),
        }
        self.host = RunningHost(ctl, root, self.env)

    def _program(self, name: str, text: str) -> None:
        (self.root / "bin" / name).write_text(text)
        (self.root / "bin" / name).chmod(0o755)

    def run(self, *words: str) -> None:
        """One command, whose output is kept whatever it says."""
        done = subprocess.run(
            [self.ctl, *words],
            env={**self.env, "TERMSPRAWL_SESSION_FILE": self.host.session_file},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
            cwd=self.host.project,
        )
        self.outputs[" ".join(words)] = done.stdout + done.stderr

    def tokens(self) -> dict[Path, str]:
        """File to token, of everything that runs."""
        files = [*self.root.rglob("sessions/*.json"), *self.root.rglob("tmp/termsprawl-tui-*/endpoint.json")]
        return {path: json.loads(path.read_text())["token"] for path in files}


@pytest.fixture
def machine(ctl, tmp_path_factory, hermetic_env):
    python = os.path.join(hermetic_env["PATH"].split(os.pathsep)[0], "python3")
    made = Machine(ctl, tmp_path_factory.mktemp("m"), {**hermetic_env, "PYTHON": python})
    made.host.start()
    yield made
    made.host.stop("--kill-sessions")


@pytest.fixture
def users_tmux(tmp_path_factory):
    prepared = Prepared(tmp_path_factory.mktemp, plain_path(), ahead=1)
    yield prepared.take()
    prepared.close()


def processes() -> dict[str, bytes]:
    """What any program of the same user can read of each process; of another user's less."""
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            try:
                found[f"/proc/{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
            except OSError:
                continue
    return found


def files_below(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in root.rglob("*") if path.is_file() and not path.is_symlink()}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="the processes are looked at in /proc")
def test_a_token_is_in_its_own_private_file_and_nowhere_else(machine, users_tmux):
    host = machine.host
    node = host.value("terminal_open", title="t")["nodeId"]
    host.value("terminal_run", nodeId=node, command="env; set; history; ps -ef")
    agents = [host.value("agent_launch", agent=agent)["nodeId"] for agent in ("claude", "opencode")]
    for agent in agents:
        host.wait_for_text(agent, "launched")
    share = RunningShare(
        [machine.ctl, "tui", "share", "--client", users_tmux.first.name, "--socket-path", users_tmux.socket],
        machine.env,
    )
    session = ["--session", host.session_file]
    codex = [machine.ctl, "mcp", "agent", "codex", "--cwd", str(host.project)]
    with (
        McpServer([machine.ctl, "mcp", *session], machine.env) as bridge,
        McpServer([machine.ctl, "mcp", "tui", "--endpoint", share.path], machine.env) as tui,
        McpServer(codex, machine.env) as agent,
    ):
        for server in (bridge, tui, agent):
            server.initialize()
        for name, server, tool, arguments in (
            ("bridge", bridge, "terminal_read", {"nodeId": node}),
            ("tui", tui, "get_view_context", {}),
            ("agent", agent, "run", {"prompt": "x", "background": True}),
        ):
            answer = server.request("tools/call", {"name": tool, "arguments": arguments})
            assert not answer["result"]["isError"], answer
            machine.outputs[name] = json.dumps(answer).encode()
        for words in (
            ("doctor", "--explain", "--json"),
            ("host", "status", "--json"),
            ("host", "log", "--json"),
            ("call", "canvas_list"),
            ("call", "nonsense", "{"),
            ("map", "--json"),
            ("install", "claude", "--json"),
            ("external", node, "--dry-run", "--json"),
            ("tui", "context", "--endpoint", share.path),
            ("completion", "--candidates", "--", "attach", ""),
        ):
            machine.run(*words)
        tokens = machine.tokens()
        assert len(tokens) == 5, tokens  # the person's, a shell's, two agents' and the share's
        assert len(set(tokens.values())) == 5
        places = {**processes(), **files_below(machine.root), **files_below(Path(users_tmux.socket).parent)}
        for words in (("show-environment", "-g"), ("list-buffers",), ("show-options", "-A"), ("list-panes", "-a")):
            places[f"tmux {words}"] = host.tmux(*words).stdout
        for one in (node, *agents):
            screen = host.tmux("capture-pane", "-p", "-S", "-", "-t", f"=ts-{one}:").stdout
            places[f"screen of {one}"] = screen
            places[f"environment of {one}"] = host.tmux("show-environment", "-t", f"=ts-{one}").stdout
        places["bar"] = users_tmux.first.output
        places |= machine.outputs
        places |= {
            f"log of {name}": server.log().encode() for name, server in (("b", bridge), ("t", tui), ("a", agent))
        }
    assert share.stop() == 0
    for path, token in tokens.items():
        assert re.fullmatch("[0-9a-f]{64}", token)
        holders = [place for place, data in places.items() if token.encode() in data]
        assert holders == [str(path)]
    assert any(b"TERMSPRAWL_SESSION_FILE" in data for place, data in places.items() if place.endswith("/environ"))
    for path in map(Path, tokens):
        if path.exists():  # the share's went with it
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
