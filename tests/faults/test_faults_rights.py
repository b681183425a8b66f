"""Commands of a user who may write next to nothing: they say so, change nothing, and need no more than they use."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from support import faults
from support.tui_tmux import Terminal
from support.waiting import until

OLD = "# of the user\n"
# A coding agent that says one thing.
AGENT = """\
#!/bin/sh
cat >/dev/null
echo '{"type": "thread.started", "thread_id": "11111111-2222-4333-8444-555555555555"}'
echo '{"type": "turn.started"}'
echo '{"type": "item.completed", "item": {"type": "agent_message", "id": "m", "text": "The answer."}}'
echo '{"type": "turn.completed", "usage": {"input_tokens": 10, "output_tokens": 5}}'
"""


class Nobody:
    """A user without a home of their own, in a place that they can read; python3 is the system's."""

    def __init__(self, ctl: str, folder: Path) -> None:
        self._before = faults.need_nobody()
        self.folder = folder
        self.ctl = str(shutil.copy2(ctl, folder / "termsprawlctl"))
        self.home = folder / "home"
        (self.home / ".codex").mkdir(parents=True)
        (self.home / ".codex" / "config.toml").write_text(OLD)
        (folder / "codex").write_text(AGENT)
        (folder / "codex").chmod(0o755)
        path = f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin"
        self.marked = faults.Marked({"PATH": path, "HOME": str(self.home)})

    def run(self, *words: str, **env: str) -> subprocess.CompletedProcess:
        return faults.completed([*self._before, self.ctl, *words], {**self.marked.env, **env}, cwd="/")


@pytest.fixture
def nobody(ctl):
    # Not below the test's own directory, which is its user's alone.
    folder = Path(tempfile.mkdtemp(prefix="faults-", dir="/tmp"))
    try:
        folder.chmod(0o755)
        if not shutil.which("python3", path="/usr/bin:/bin"):
            pytest.skip("the system has no python3 that every user may run")
        made = Nobody(ctl, folder)
        yield made
        made.marked.assert_gone()
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_a_configuration_that_may_not_be_written_stays_and_the_reason_is_told(nobody, command):
    if command == "uninstall":
        root = {**nobody.marked.env}
        argv = [nobody.ctl, "install", "codex", "--server", "agent:codex", "--write", "--no-verify"]
        subprocess.run(argv, env=root, capture_output=True, check=True, timeout=60)
        for path in (nobody.home / ".codex").iterdir():
            path.chmod(0o644)
    before = faults.snapshot(nobody.home)
    done = nobody.run(command, "codex", "--server", "agent:codex", "--write")
    assert done.returncode == 1
    assert "Permission denied" in done.stderr or "belongs to another user" in done.stderr
    assert faults.snapshot(nobody.home) == before


def test_an_agent_runs_where_neither_the_home_nor_the_place_for_temporary_files_can_be_written_to(nobody):
    temporary = nobody.folder / "tmp"
    temporary.mkdir(0o755)
    mine = set(os.listdir("/tmp"))
    done = nobody.run("agent", "run", "codex", "p", "--no-activity", TMPDIR=str(temporary))
    assert (done.returncode, done.stdout) == (0, "The answer.\n"), done.stderr
    assert os.listdir(temporary) == []
    assert not [
        name
        for name in set(os.listdir("/tmp")) - mine
        if name.startswith("termsprawlctl-run-") and os.stat(f"/tmp/{name}").st_uid == faults.NOBODY
    ]


def test_a_closed_terminal_ends_the_agent_that_a_shell_runs_in_it(ctl, tmp_path, hermetic_env):
    agent = tmp_path / "codex"
    agent.write_text(f"#!/bin/sh\necho >{tmp_path}/ready\nsleep 600\n")
    agent.chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{hermetic_env['PATH']}"
    marked = faults.Marked({**hermetic_env, "PATH": path, "HOME": str(tmp_path), "TMPDIR": str(tmp_path)})
    terminal = Terminal(["sh", "-c", f"'{ctl}' agent run codex p; true"], marked.env)
    until((tmp_path / "ready").exists, "the run's start")
    terminal.close()  # its shell is killed, and the others are hung up
    marked.assert_gone()
    until(lambda: not list(tmp_path.glob("termsprawlctl-*")), "the removal of the run's files")
