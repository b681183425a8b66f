"""`install` and `uninstall` under faults: the client's file is the old one or the new one, whole and alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support import faults
from support.waiting import until

OLD = '# of the user\nmodel = "m"\n\n[mcp_servers.other]\ncommand = "other"\n'
WORDS = ["codex", "--server", "agent:codex", "--write"]
FILE, BACKUP = "config.toml", "config.toml.termsprawlctl-backup"
POLITE = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT]


class Client:
    """A client's configuration folder that can be put back, and the two commands that change it."""

    def __init__(self, ctl: str, folder: Path, env: dict[str, str]) -> None:
        self.ctl = ctl
        self.folder = folder / "home" / ".codex"
        self.log = folder / "trace"
        self.folder.mkdir(parents=True)
        self.marked = faults.Marked({**env, "HOME": str(self.folder.parent)})
        self.reset({FILE: OLD.encode()})
        self.run("install")
        self.installed = faults.snapshot(self.folder)
        assert self.installed[BACKUP] == OLD.encode()
        self.new = self.installed[FILE]

    def argv(self, command: str) -> list[str]:
        return [self.ctl, command, *WORDS, *(["--no-verify"] if command == "install" else [])]

    def run(self, command: str, before: tuple | list = (), **options) -> subprocess.CompletedProcess:
        return faults.completed([*before, *self.argv(command)], self.marked.env, **options)

    def steps(self, command: str) -> list[faults.Step]:
        self.prepare(command)
        return faults.steps(self.argv(command), self.folder, self.log, env=self.marked.env)

    def prepare(self, command: str) -> None:
        """The state that the command changes."""
        self.reset({FILE: OLD.encode()} if command == "install" else self.installed)

    def reset(self, content: dict[str, bytes]) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        for name, data in content.items():
            (self.folder / name).write_bytes(data)
        self.before = content

    def check(self, done: subprocess.CompletedProcess, command: str, told: str) -> None:
        """The file is whole, its backup too, nothing else is there, and the command works the next time."""
        before, after = (OLD.encode(), self.new) if command == "install" else (self.new, OLD.encode())
        found = faults.snapshot(self.folder)
        assert found[FILE] in (before, after), told
        assert found[FILE] == after or done.returncode != 0, told
        assert found.get(BACKUP, OLD.encode()) == OLD.encode(), told
        if done.returncode != -signal.SIGKILL:
            assert set(found) <= {FILE, BACKUP}, told
            assert done.returncode in (0, 130) or done.stderr.strip() or done.returncode < 0, told
        if found == self.before:
            return  # as if nothing had happened
        again = self.run(command)
        assert again.returncode == 0, f"{told}: {again.stderr}"
        found = faults.snapshot(self.folder)
        assert found[FILE] == after, told
        assert set(found) <= {FILE, BACKUP}, told


@pytest.fixture
def client(ctl, tmp_path, hermetic_env):
    made = Client(ctl, tmp_path, hermetic_env)
    yield made
    made.marked.assert_gone()


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_whichever_step_fails_the_file_is_whole_and_the_next_command_works(client, command):
    for step in client.steps(command):
        client.prepare(command)
        error = "EMFILE" if "O_RDONLY" in step.text else "ENOSPC"
        done = client.run(command, faults.failing(step, error))
        client.check(done, command, f"{step!r} -> {error}: {done.returncode} {done.stderr}")


@pytest.mark.parametrize("command", ["install", "uninstall"])
def test_killed_at_whichever_step_the_file_is_whole_and_the_next_command_clears_up(client, command):
    for step in client.steps(command):
        if "O_RDONLY" in step.text:
            continue
        client.prepare(command)
        done = client.run(command, faults.dying(step))
        assert done.returncode == -signal.SIGKILL, f"{step!r}: {done.stderr}"
        client.check(done, command, f"{step!r} killed")


@pytest.mark.parametrize("number", POLITE)
def test_a_signal_in_the_middle_of_a_write_leaves_nothing_beside_the_file(client, number):
    middle = [step for step in client.steps("install") if step.call in ("fsync", *faults.RENAMES)]
    assert len(middle) == 4, "those of the backup and of the file"
    for step in middle[1:3]:
        client.prepare("install")
        done = client.run("install", faults.dying(step, number))
        assert done.returncode == (130 if number == signal.SIGINT else -number)
        client.check(done, "install", f"{step!r} <- {number!r}: {done.returncode} {done.stderr}")


def test_on_a_full_disk_nothing_is_changed_and_with_room_again_it_works(client):
    with faults.small_disk(client.folder, 64 << 10) as disk:
        (disk / FILE).write_text(OLD)
        filled = faults.fill(disk)
        done = client.run("install")
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        filled.unlink()
        assert faults.snapshot(disk) == {FILE: OLD.encode()}
        assert client.run("install").returncode == 0
        assert faults.snapshot(disk) == client.installed


HANGING = """#!/bin/sh
[ "$1 $2" = "mcp list" ] || exit 1
{python} -c 'import time; time.sleep(600)' &
echo $! > {told}
wait
"""


def with_hanging_client(folder: Path) -> Path:
    """A folder of programs with a client that never lists its servers; says so in the file `told`."""
    programs = folder / "bin"
    programs.mkdir()
    (programs / "codex").write_text(HANGING.format(python=sys.executable, told=folder / "told"))
    (programs / "codex").chmod(0o755)
    return programs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ended_while_the_client_lists_its_servers_it_ends_the_client_with_all_that_it_started(client, tmp_path, number):
    programs, told = with_hanging_client(tmp_path), tmp_path / "told"
    client.prepare("install")
    env = {**client.marked.env, "PATH": f"{programs}{os.pathsep}{client.marked.env['PATH']}"}
    argv = [word for word in client.argv("install") if word != "--no-verify"]
    null = subprocess.DEVNULL
    process = subprocess.Popen(argv, env=env, stdin=null, stdout=null, stderr=null, start_new_session=True)
    until(lambda: told.is_file() and told.read_text().endswith("\n"), "the client is asked")
    process.send_signal(number)
    assert process.wait(faults.PATIENCE_S) == (130 if number == signal.SIGINT else -number)
    client.marked.assert_gone()
    assert faults.snapshot(client.folder) == client.installed


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("nth", [1, 2], ids=["the server", "the client"])
def test_ended_at_the_very_start_of_a_program_that_it_asks_it_ends_that_too(client, tmp_path, number, nth):
    programs = with_hanging_client(tmp_path)
    client.prepare("install")
    env = {**client.marked.env, "PATH": f"{programs}{os.pathsep}{client.marked.env['PATH']}"}
    argv = [word for word in client.argv("install") if word != "--no-verify"]
    before = faults.dying(faults.Step(faults.STARTS, nth, ""), number)
    null = subprocess.DEVNULL
    done = subprocess.run([*before, *argv], env=env, stdin=null, stdout=null, stderr=null, timeout=60, check=False)
    assert done.returncode == (130 if number == signal.SIGINT else -number)
    client.marked.assert_gone()
    assert faults.snapshot(client.folder) == client.installed
