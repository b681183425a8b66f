"""The first lines of the built file, which a shell reads: every shell that is somebody's `sh` gets it running."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest
from support.command import NO_SESSION, run
from support.pseudoterminal import run_in_terminal
from support.pythons import on_path

# Each is /bin/sh somewhere, or is called by that name. yash needs a locale to read arguments that are not ASCII.
SHELLS = [
    "dash",
    "bash",
    "bash --posix",
    "busybox sh",
    "busybox ash",
    "ksh",
    "mksh",
    "posh",
    "yash",
    "yash --posix",
    "zsh",
    "zsh --emulate sh",
]
SYSTEM_PATH = "/usr/bin:/bin"
ODD_WORDS = ["a b", "*", "", "$HOME", "`x`", "$(x)", "\\", "'\"", "~", "-n", "é", "!x", ";", "#"]


@pytest.fixture(params=SHELLS)
def shell(request) -> list[str]:
    """The words that start a shell; skips where it is not installed (counterparts/apt-compat.txt has them)."""
    name, *options = request.param.split()
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"{name} is not installed")
    return [path, *options]


@pytest.fixture
def env(tmp_path) -> dict[str, str]:
    """A PATH with the system's programs, and the Python that runs the tests."""
    python = os.path.join(sys.base_prefix, "bin", "python3")
    return {"PATH": f"{on_path(tmp_path / 'python', python)}:{SYSTEM_PATH}", "LC_ALL": "C.UTF-8"}


def test_every_shell_starts_it(shell, ctl, env):
    assert run([*shell, ctl, "doctor"], env).err == NO_SESSION
    assert run([*shell, os.path.basename(ctl), "doctor"], env, cwd=os.path.dirname(ctl)).err == NO_SESSION


def test_every_shell_hands_on_each_word_as_it_is(shell, ctl, tmp_path):
    python = tmp_path / "python3"
    python.write_text("#!/bin/sh\nprintf '%s\\0' \"$@\"\n")
    python.chmod(0o755)
    done = run([*shell, ctl, *ODD_WORDS], {"PATH": f"{tmp_path}:{SYSTEM_PATH}", "LC_ALL": "C.UTF-8"})
    options, dash_c, _boot, *words = done.out.decode().split("\0")[:-1]
    assert (options, dash_c, words) == ("-ISBXutf8", "-c", [ctl, *ODD_WORDS])


def test_every_shell_starts_it_at_a_terminal(shell, ctl, env):
    # There the first lines do one thing more: Ctrl-C is ignored until Python has started up.
    status, screen = run_in_terminal([*shell, ctl, "doctor"], env)
    assert (status, screen.replace("\r\n", "\n").encode()) == (2, NO_SESSION)


def test_every_shell_says_that_there_is_no_python(shell, ctl, tmp_path):
    if shell[-1] == "--posix" and "yash" in shell[0]:
        pytest.skip("this mode of yash looks for echo on PATH, too")
    done = run([*shell, ctl, "doctor"], {"PATH": str(tmp_path)})
    assert (done.status, done.out) == (127, b"")
    assert done.err.decode() == f"{ctl}: needs python3, 3.9 or newer\n"


def test_a_python3_that_cannot_be_executed_counts_as_none(ctl, tmp_path):
    for name in ("folder", "file"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder" / "python3").mkdir()
    (tmp_path / "file" / "python3").write_text("no program")
    done = run([ctl, "doctor"], {"PATH": f"{tmp_path}/folder:{tmp_path}/file"})
    assert (done.status in (126, 127), done.out) == (True, b"")


@pytest.mark.parametrize("env_words", [["/usr/bin/env"], ["busybox", "env"]], ids=" ".join)
def test_it_is_found_by_its_name_on_path(env_words, ctl, env):
    if shutil.which(env_words[0]) is None:
        pytest.skip(f"{env_words[0]} is not installed")
    folder = os.path.dirname(ctl)
    for path in (f"{folder}:{env['PATH']}", f":{env['PATH']}", f".:{env['PATH']}"):
        done = run([*env_words, "termsprawlctl", "doctor"], {**env, "PATH": path}, cwd=folder)
        assert done.err == NO_SESSION
    only = [*env_words, "-i", f"PATH={env['PATH']}", ctl, "doctor"]
    assert run(only, env).err == NO_SESSION


# Starts a program without a shell, under a name of its own choice or from a descriptor.
EXEC = """
import os, sys
how, path, name = sys.argv[1:4]
descriptor = os.open(path, os.O_RDONLY)
os.set_inheritable(descriptor, True)
target = {"path": path, "descriptor": descriptor, "proc": "/proc/self/fd/%d" % descriptor}[how]
os.execve(target, [name, *sys.argv[4:]], os.environ)
"""


@pytest.mark.parametrize("name", ["-", "-sh", "a b", "sh", "x" * 5000, "\udcff"])
def test_the_name_that_it_is_started_under_does_not_matter(name, ctl, env):
    assert run([sys.executable, "-c", EXEC, "path", ctl, name, "doctor"], env).err == NO_SESSION


@pytest.mark.parametrize("how", ["descriptor", "proc"])
def test_it_runs_from_an_open_descriptor(how, ctl, env):
    if not os.path.isdir("/proc/self/fd") or os.execve not in os.supports_fd:
        pytest.skip("this system starts no program from a descriptor")
    assert run([sys.executable, "-c", EXEC, how, ctl, "x", "doctor"], env).err == NO_SESSION


# A python3 like those that were built without the library: it runs the text after -c as Python itself does.
WITHOUT_ZLIB = """\
#!/bin/sh
while [ "${{1#-}}" != "$1" ]; do shift; done
exec {python} -ISB -c '
import sys
sys.modules["zlib"] = None
exec(sys.argv.pop(1))' "$@"
"""


def test_a_python_without_zlib_gets_one_line(ctl, tmp_path):
    folder = tmp_path / "python"
    folder.mkdir()
    python = Path(folder, "python3")
    python.write_text(WITHOUT_ZLIB.format(python=sys.executable))
    python.chmod(0o755)
    done = run([ctl, "doctor"], {"PATH": f"{folder}:{SYSTEM_PATH}"})
    assert (done.status, done.out) == (2, b"")
    said = f"termsprawlctl: needs a Python with zlib, but {sys.executable} has none. "
    assert done.err.decode() == said + "Put one that has it first on PATH.\n"
