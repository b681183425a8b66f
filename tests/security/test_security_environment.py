"""Hostile variables and working directories: which program runs, and whose code it loads."""

from __future__ import annotations

import os
import subprocess

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.processes import find_program, run

PROGRAMS = ("tmux", "git", "ps", "codex", "xterm", "x-terminal-emulator", "claude")


@pytest.fixture
def planted(tmp_path):
    """A project folder with programs in it, each of which would leave a file behind."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\necho 'tmux 3.3a --config mcp'\n")
        (folder / name).chmod(0o755)
    (folder / ".git").mkdir()
    return folder


def built(ctl, words, env, cwd):
    return subprocess.run(
        [ctl, *words], env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
    )


@pytest.mark.parametrize("entry", ["", ".", "bin/.."])
def test_a_program_of_the_current_folder_is_not_found_by_a_relative_path(planted, monkeypatch, entry):
    (planted / "bin").mkdir()
    monkeypatch.chdir(planted)
    path = f"{entry}:/nowhere:{entry}"
    monkeypatch.setenv("PATH", path)
    assert [find_program(name) or find_program(name, path) for name in PROGRAMS] == [None] * len(PROGRAMS)
    with pytest.raises(CtlError, match="is not installed, or not on PATH"):
        run(["git"], timeout_s=5)
    assert find_program(str(planted / "git")) == find_program("git", f"{entry}:{planted}") == str(planted / "git")


@pytest.mark.parametrize(
    "words",
    [("host", "status"), ("agent", "run", "codex", "x"), ("external", "--list"), ("tui", "sessions")],
    ids=" ".join,
)
def test_no_command_starts_what_lies_in_the_folder_that_it_runs_in(ctl, planted, tmp_path, hermetic_env, words):
    env = {**hermetic_env, "PATH": f":{hermetic_env['PATH']}:.", "HOME": str(tmp_path), "TMUX": ""}
    built(ctl, words, env, planted)
    assert not (tmp_path / "ran").exists()


def test_variables_and_files_of_python_bring_no_code_in(ctl, tmp_path, hermetic_env):
    bad = tmp_path / "bad"
    bad.mkdir()
    for name in ("argparse", "json", "re", "socket", "sitecustomize", "usercustomize", "zlib"):
        (bad / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    env = {
        **hermetic_env,
        "HOME": str(tmp_path),
        "PYTHONPATH": str(bad),
        "PYTHONSTARTUP": str(bad / "json.py"),
        "PYTHONINSPECT": "1",
        "PYTHONHOME": "/nowhere",
        "PYTHONWARNINGS": "error::json.Bad",
    }
    done = built(ctl, ["tools"], env, bad)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "ran").exists()


def test_no_proxy_of_the_environment_sees_a_call(ctl, tmp_path, hermetic_env):
    from support.scripted_server import ScriptedServer, Trap, answer, replying
    from support.session_files import SessionFiles

    with Trap() as proxy, ScriptedServer(replying(answer({"ok": True}))) as app:
        files = SessionFiles(tmp_path, app.port)
        where = f"http://127.0.0.1:{proxy.port}"
        env = {**hermetic_env, **dict.fromkeys(("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"), where)}
        done = built(ctl, ["doctor", "--session", str(files.session)], env, tmp_path)
        assert (done.returncode, proxy.untouched(), len(app.requests)) == (0, True, 1)


def test_a_umask_of_nothing_makes_nothing_public(ctl, tmp_path, hermetic_env):
    env = {**hermetic_env, "HOME": str(tmp_path), "SHELL": "/bin/sh", "TMPDIR": str(tmp_path)}
    data = tmp_path / "data"
    words = ["host", "start", "--data", str(data), "--project", str(tmp_path)]
    start = ["/bin/sh", "-c", 'umask 0; exec "$0" "$@"', ctl, *words]
    try:
        subprocess.run(start, env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        found = [data, *data.rglob("*"), *(tmp_path / ".termsprawl").rglob("*")]
        public = [str(path) for path in found if os.lstat(path).st_mode & 0o077 and not path.is_symlink()]
    finally:
        built(ctl, ["host", "stop", "--kill-sessions", "--data", str(data)], env, tmp_path)
    assert [path for path in public if not path.endswith("tmux-sockets/termsprawl")] == []
