"""A real Claude Code, launched by the host: its conversation is found and read, its prompt takes a task."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider
from support.running_host import RunningHost
from test_launch_agents import configure_claude

pytestmark = pytest.mark.counterpart

SCRIPT = {"turns": [{"text": "The work is done."}], "side": "x"}
TASK = "please count the files\n\tin this folder;"


def wait_for(condition, timeout_s: float = 90.0):
    end = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(0.1)


def test_a_claude_gets_a_task_at_its_prompt_and_its_words_are_read_by_who_is_linked(
    ctl, hermetic_env, tmp_path_factory
):
    root = tmp_path_factory.mktemp("c")
    with FakeProvider(SCRIPT) as provider:
        cli = agent_clis.ALL["claude"](root, hermetic_env, provider.url, ["unused"])
        configure_claude(cli)
        (root / "bin").mkdir()
        (root / "bin" / "claude").symlink_to(cli.command[0])
        path = f"{root / 'bin'}{os.pathsep}{cli.env['PATH']}"
        host = RunningHost(ctl, root, {**cli.env, "PATH": path, "SHELL": "/bin/bash"})
        try:
            host.start()
            node = host.value("agent_launch", agent="claude")["nodeId"]
            person = Path(host.session_file).stem
            assert host.run("host", "link", person, node, "--data", str(host.data)).returncode == 0
            host.wait_for_text(node, "\u276f", timeout_s=90)
            task = host.value("agent_send", nodeId=node, text=TASK, messageId="m1")
            host.wait_for_text(node, "The work is done.", timeout_s=90)
            read = wait_for(lambda: host.value("context_read")["text"])
            assert read.startswith(f"# {node} (claude) claude\n\nuser, ")
            assert f"termsprawl task {task['taskId']} from the agent {person}" in read
            assert TASK in read.replace("    ", "\t")
            assert wait_for(lambda: "The work is done." in host.value("context_read")["text"])
        finally:
            host.stop("--kill-sessions")
