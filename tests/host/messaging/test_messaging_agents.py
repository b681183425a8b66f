"""Real coding agents take a task at their prompt; what a real Claude Code said is found and read."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from support import agent_clis
from support.fake_provider import FakeProvider
from support.launched_agents import CONFIGURE, READY
from support.running_host import RunningHost
from support.waiting import until

pytestmark = pytest.mark.counterpart

DONE = "The work is done."
TASK = "count the files\n  in this folder; then say so;\n!ls"
TIMEOUT_S = 90.0


# opencode takes it as well; its start alone is longer than both of these tests.
@pytest.mark.parametrize("agent", ["codex", "claude"])
def test_a_task_is_submitted_at_the_agents_prompt_as_one_message(ctl, hermetic_env, tmp_path_factory, agent):
    root = tmp_path_factory.mktemp("c")
    with FakeProvider({"turns": [{"text": DONE}], "side": "x"}) as provider:
        cli = agent_clis.ALL[agent](root, hermetic_env, provider.url, ["unused"])
        CONFIGURE[agent](cli)
        (root / "bin").mkdir()
        (root / "bin" / agent).symlink_to(cli.command[0])
        path = os.pathsep.join([str(root / "bin"), os.path.dirname(cli.command[0]), cli.env["PATH"]])
        host = RunningHost(ctl, root, {**cli.env, "PATH": path, "SHELL": "/bin/bash"})
        try:
            host.start()
            node = host.value("agent_launch", agent=agent)["nodeId"]
            person = Path(host.session_file).stem
            for kind in ([], ["--context"]):
                assert host.run("host", "link", *kind, person, node, "--data", str(host.data)).returncode == 0
            host.wait_for_text(node, READY[agent], timeout_s=TIMEOUT_S)
            task = host.value("agent_send", nodeId=node, text=TASK, messageId="m1")
            host.wait_for_text(node, DONE, timeout_s=TIMEOUT_S)
            asked = [json.dumps(request) for request in provider.asked()]
            head, words = f"Task ID: {task['id']}. Source agent: ", json.dumps(json.dumps(TASK))[1:-1]
            assert any(head in request and words in request for request in asked)
            if agent == "claude":
                read_back(host, node, head)
        finally:
            host.stop("--kill-sessions")


def read_back(host, node: str, head: str) -> None:
    until(lambda: DONE in host.value("context_read")["text"], "its words in its transcript", TIMEOUT_S)
    text = host.value("context_read")["text"]
    assert text.startswith(f"# {node} (claude) claude\n\nuser, ")
    assert head in text
    assert json.dumps(TASK) in text
