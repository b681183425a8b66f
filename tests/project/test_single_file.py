"""The built file as a file: it runs from anywhere, by every Python, touches nothing, and is always the same bytes."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import pytest
from support.command import run
from support.pythons import installed, new_enough, too_old
from support.scripted_server import ScriptedServer, answer, replying
from support.session_files import SessionFiles

ROOT = Path(__file__).resolve().parents[2]
GOOD = {"ok": True, "value": {"text": "é"}}
SYSTEM_PATH = "/usr/bin:/bin"
# For everything that is not about the network: prints a guide, needs no session.
QUIET = ["guide", "canvas"]


@pytest.fixture
def session(tmp_path):
    """The session file of an app that answers every call with GOOD."""
    with ScriptedServer(replying(answer(GOOD))) as server:
        yield str(SessionFiles(tmp_path / "app", server.port).session)


def python_path(tmp_path: Path, version: tuple[int, int]) -> str:
    """A PATH on which `python3` is that Python."""
    folder = tmp_path / "python"
    folder.mkdir()
    (folder / "python3").symlink_to(installed()[version])
    return f"{folder}:{SYSTEM_PATH}"


def is_good(done) -> bool:
    assert (done.status, done.err) == (0, b"")
    return json.loads(done.out) == GOOD


def tree(*roots: Path) -> dict:
    """Every path below the roots with its kind, size, mode and time of change."""
    found = {}
    for root in roots:
        for path in [root, *root.rglob("*")]:
            status = path.lstat()
            found[str(path)] = (status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
    return found


# Where it lies and how it is started


@pytest.fixture(params=["plain", "mit leerzeichen und ümläuten 😀", "a'b\"c$d;e", "-dash", "x" * 200])
def copy(request, tmp_path, ctl) -> Path:
    """A copy of the built file in a folder of a difficult name."""
    folder = tmp_path / request.param
    folder.mkdir()
    return Path(shutil.copy(ctl, folder / "termsprawlctl"))


def test_it_runs_from_wherever_it_lies(copy, session, hermetic_env, tmp_path):
    link = tmp_path / "verknüpfung"
    link.symlink_to(copy)
    relative_link = copy.parent / "link to link"
    relative_link.symlink_to(os.path.relpath(link, copy.parent))
    doctor = ["doctor", "--session", session]
    assert is_good(run([copy, *doctor], hermetic_env, cwd="/"))
    assert is_good(run(["./termsprawlctl", *doctor], hermetic_env, cwd=copy.parent))
    assert is_good(run([f"../{copy.parent.name}/termsprawlctl", *doctor], hermetic_env, cwd=copy.parent))
    assert is_good(run([link, *doctor], hermetic_env, cwd="/"))
    assert is_good(run([relative_link, *doctor], hermetic_env))
    for words in (
        ["python3", copy],
        ["python3", link],
        ["sh", copy],
        ["python3", "-I", copy],
        ["python3", "-E", copy],
    ):
        assert is_good(run([*words, *doctor], hermetic_env, cwd="/"))
    assert is_good(run(["python3", "./termsprawlctl", *doctor], hermetic_env, cwd=copy.parent))
    if ":" not in copy.parent.name:
        on_path = hermetic_env | {"PATH": f"{copy.parent}:{hermetic_env['PATH']}"}
        assert is_good(run(["/usr/bin/env", "termsprawlctl", *doctor], on_path, cwd="/"))


def test_a_current_folder_that_is_gone_does_not_matter(session, ctl, hermetic_env, tmp_path):
    (tmp_path / "gone").mkdir()
    command = f'cd "{tmp_path}/gone" && rmdir "{tmp_path}/gone" && exec "{ctl}" doctor --session "{session}"'
    done = run(["sh", "-c", command], hermetic_env)  # on stderr the shell itself may complain
    assert (done.status, json.loads(done.out)) == (0, GOOD)


def test_the_package_runs_as_a_module_and_as_an_installed_script(session, hermetic_env, tmp_path):
    doctor = ["doctor", "--session", session]
    assert is_good(run([sys.executable, "-m", "termsprawlctl", *doctor], hermetic_env, cwd=ROOT))
    script = Path(sys.executable).parent / "termsprawlctl"
    if not script.exists():
        pytest.skip("the package is not installed in this environment")
    assert is_good(run([script, *doctor], hermetic_env, cwd=tmp_path))


# Pythons


@pytest.mark.parametrize("version", new_enough(), ids=str)
def test_it_runs_with_every_python_that_is_new_enough(version, session, ctl, tmp_path):
    env = {"PATH": python_path(tmp_path, version)}
    doctor = ["doctor", "--session", session]
    assert is_good(run([ctl, *doctor], env))
    assert is_good(run(["python3", ctl, *doctor], env))
    assert is_good(run([ctl, "call", "sticky_open", "text=é", "--session", session], env))
    assert run([ctl, "tools", "--json"], env).status == 0
    assert run([ctl, *QUIET], env).status == 0
    for deep in ("[" * 501 + "]" * 501, "[" * 60_000, "NaN", "1e999", "9" * 5000):
        done = run([ctl, "call", "x", deep, "--session", session], env)
        assert (done.status, done.out) == (2, b"")
        assert b" is not JSON: " in done.err


def test_this_machine_has_a_python_to_test_with():
    assert new_enough()


@pytest.mark.parametrize("version", too_old() or [None], ids=str)
def test_a_python_that_is_too_old_gets_one_line(version, ctl, tmp_path):
    if version is None:
        pytest.skip("no Python before 3.9 on this machine")
    python = installed()[version]
    env = {"PATH": SYSTEM_PATH}
    attempts = [run([python, ctl, *words], env) for words in ([], ["doctor"], ["--version"])]
    if version >= (3, 4):  # python3 with -I, as the file starts it
        attempts.append(run([ctl, "doctor"], {"PATH": python_path(tmp_path, version)}))
    for done in attempts:
        assert (done.status, done.out) == (2, b"")
        said = f"termsprawlctl: needs Python 3.9 or newer, but this is Python {version[0]}.{version[1]}. "
        assert done.err.decode() == said + "Put a newer python3 first on PATH.\n"


def test_without_any_python_one_line_says_so(ctl, tmp_path):
    done = run([ctl, "doctor"], {"PATH": str(tmp_path)})
    assert (done.status, done.out) == (127, b"")
    assert done.err.decode() == f"{ctl}: needs python3, 3.9 or newer\n"


# It changes nothing and needs nothing


@pytest.mark.parametrize("how", ["itself", "python3"])
def test_nothing_is_written_anywhere(how, session, ctl, hermetic_env, tmp_path):
    places = [tmp_path / name for name in ("home", "tmp", "here", "program", "cache")]
    for place in places:
        place.mkdir()
    home, temporary, here, program, cache = places
    copy = Path(shutil.copy(ctl, program))
    env = hermetic_env | {
        "HOME": str(home),
        "TMPDIR": str(temporary),
        "XDG_CACHE_HOME": str(cache),
        "XDG_STATE_HOME": str(cache),
        "XDG_CONFIG_HOME": str(cache),
        "SHIV_ROOT": str(cache),
    }
    start = [copy] if how == "itself" else ["python3", copy]
    before = tree(*places, Path(session).parent.parent)
    for words in (["doctor"], ["call", "x"], ["call"], ["tools"], ["guide"], ["--help"], ["junk"], ["call", "x", "{"]):
        run([*start, *words], env | {"TERMSPRAWL_SESSION_FILE": session}, cwd=here)
    assert tree(*places, Path(session).parent.parent) == before


@pytest.mark.parametrize("home", [None, "", "/", "/none/of/these", "/dev/null", "relative"])
def test_it_runs_without_a_usable_home(home, session, ctl, hermetic_env):
    env = hermetic_env if home is None else hermetic_env | {"HOME": home}
    assert is_good(run([ctl, "doctor", "--session", session], env))
    assert is_good(run(["python3", ctl, "doctor", "--session", session], env))


def test_it_runs_where_the_whole_file_system_is_read_only(session, ctl, hermetic_env, tmp_path):
    if os.getuid() != 0 or not shutil.which("unshare"):
        pytest.skip("a read-only view of the file system needs root and unshare")
    view = 'for m in / /tmp "$1"; do mount -o remount,ro,bind "$m" 2>/dev/null; done; ! touch "$1/probe" 2>/dev/null'
    inside = ["unshare", "-m", "sh", "-c", view + '&& shift && exec "$@"', "sh", str(tmp_path)]
    if run([*inside, "true"], hermetic_env).status != 0:
        pytest.skip("this machine gives no read-only view of the file system")
    env = hermetic_env | {"HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    for start in ([ctl], ["python3", ctl]):
        assert is_good(run([*inside, *start, "doctor", "--session", session], env, cwd=tmp_path))


def test_it_runs_where_its_user_may_write_nothing(session, ctl, tmp_path):
    if os.getuid() != 0 or not os.access("/usr/bin/python3", os.X_OK):
        pytest.skip("becoming a user without rights needs root, and a python3 that others can run")
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    program = Path(shutil.copy(ctl, "/dev/shm" if os.path.isdir("/dev/shm") else "/tmp"))
    try:
        done = run([program, *QUIET], {"PATH": SYSTEM_PATH, "HOME": "/root"}, cwd="/", **nobody)
        assert (done.status, done.err) == (0, b"")
    finally:
        program.unlink()


# Isolation: what lies around cannot get in


def loaded_before_any_program(python: str, folder: Path) -> set[str]:
    """The modules that this Python loads before it runs the first line of an archive; those are beyond our reach."""
    with zipfile.ZipFile(folder / "tell.zip", "w") as archive:
        archive.writestr("__main__.py", "import sys; print(*sys.modules)")
    done = subprocess.run([python, folder / "tell.zip"], env={}, capture_output=True, text=True, check=True)
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.fixture(params=new_enough(), ids=str)
def hostile(request, tmp_path, hermetic_env) -> Path:
    """A folder with a harmful module in the place of each of the standard library's, and of our package.

    `python3` is one Python after the other.
    """
    folder = tmp_path / "hostile"
    folder.mkdir()
    hermetic_env["PATH"] = python_path(tmp_path, request.param)
    python = installed()[request.param]
    harm = 'import os\nos.write(2, b"HIJACKED by " + __name__.encode() + b"\\n")\nos._exit(99)\n'
    for name in sys.stdlib_module_names - loaded_before_any_program(python, tmp_path):
        if importlib.util.find_spec(name) is None:
            continue  # another platform's; the site hooks of a Python may try to load it
        (folder / f"{name}.py").write_text(harm)
    (folder / "termsprawlctl").mkdir()
    (folder / "termsprawlctl" / "__init__.py").write_text(harm)
    return folder


@pytest.mark.parametrize("how", ["itself", "python3"])
def test_modules_on_pythonpath_change_nothing(how, session, ctl, hermetic_env, hostile):
    start = [ctl] if how == "itself" else ["python3", ctl]
    env = hermetic_env | {"PYTHONPATH": str(hostile), "PYTHONSTARTUP": str(hostile / "json.py")}
    for words in (["doctor"], ["call", "x", "a=1"], ["call", "x", '{"a": 1}']):
        assert is_good(run([*start, *words, "--session", session], env))
    assert run([*start, *QUIET], env).status == 0
    assert run([*start, "tools"], env).status == 0


@pytest.mark.parametrize("how", ["itself", "python3"])
def test_modules_in_the_current_folder_change_nothing(how, session, ctl, hermetic_env, hostile):
    start = [ctl] if how == "itself" else ["python3", ctl]
    assert is_good(run([*start, "doctor", "--session", session], hermetic_env, cwd=hostile))
    assert is_good(run([*start, "doctor", "--session", session], hermetic_env | {"PYTHONPATH": ""}, cwd=hostile))


def test_modules_beside_the_file_change_nothing(session, ctl, hermetic_env, hostile):
    copy = shutil.copy(ctl, hostile / "ctl")
    for start in ([copy], ["python3", copy]):
        assert is_good(run([*start, "doctor", "--session", session], hermetic_env, cwd=hostile))


def test_hooks_in_the_users_site_packages_are_not_run(session, ctl, hermetic_env, tmp_path):
    for version in new_enough():
        site = tmp_path / f"lib/python{version[0]}.{version[1]}/site-packages"
        site.mkdir(parents=True)
        for hook in ("usercustomize.py", "sitecustomize.py"):
            (site / hook).write_text("import os; os._exit(99)")
        (site / "hook.pth").write_text("import os; os._exit(99)\n")
    env = hermetic_env | {"PYTHONUSERBASE": str(tmp_path)}
    assert run(["python3", "-c", "pass"], env).status == 99, "the hooks do not work at all"
    assert is_good(run([ctl, "doctor", "--session", session], env))


@pytest.mark.parametrize(
    "junk",
    [
        {"PYTHONHOME": "/none"},
        {"PYTHONHOME": "/none", "PYTHONPATH": "/none"},
        {"PYTHONPLATLIBDIR": "junk"},
        {"PYTHONIOENCODING": "junk"},
        {"PYTHONINSPECT": "1"},
        {"PYTHONVERBOSE": "1"},
        {"PYTHONDEBUG": "1"},
        {"PYTHONOPTIMIZE": "2"},
        {"PYTHONWARNINGS": "error"},
        {"PYTHONDEVMODE": "1"},
        {"PYTHONTRACEMALLOC": "5"},
        {"PYTHONBREAKPOINT": "junk.junk"},
        {"PYTHONHASHSEED": "junk"},
        {"PYTHONMALLOC": "junk"},
        {"PYTHONPROFILEIMPORTTIME": "1"},
        {"PYTHONINTMAXSTRDIGITS": "junk"},
        {"PYTHONUTF8": "junk"},
        {"PYTHONEXECUTABLE": "/none"},
        {"PYTHONSAFEPATH": ""},
    ],
    ids=str,
)
def test_variables_of_python_change_nothing(junk, session, ctl, hermetic_env):
    assert is_good(run([ctl, "doctor", "--session", session], hermetic_env | junk))


# What doctor loads: start-up time is a feature

# Runs a command out of the archive and then tells, one a line, what was imported from where.
TELL_MODULES = """
import sys
archive = sys.argv[1]
sys.argv = sys.argv[1:]
sys.path.insert(0, archive)
from termsprawlctl.__main__ import main
try:
    main()
except SystemExit as end:
    status = end.code
for name, module in sorted(sys.modules.items()):
    print(name, getattr(module, "__file__", None) or "", sep="\\t", file=sys.stderr)
sys.exit(status)
"""
OWN = {
    "termsprawlctl",
    "termsprawlctl.__main__",
    "termsprawlctl.base",
    "termsprawlctl.cli",
    "termsprawlctl.cli.parser",
    "termsprawlctl.cli.commands",
    "termsprawlctl.cli.commands.doctor",
    "termsprawlctl.base.console",
    "termsprawlctl.base.waiting",
    "termsprawlctl.base.errors",
    "termsprawlctl.base.files",
    "termsprawlctl.base.jsontext",
    "termsprawlctl.app",
    "termsprawlctl.app.discovery",
    "termsprawlctl.app.http1",
    "termsprawlctl.app.peer",
    "termsprawlctl.cli.results",
    "termsprawlctl.app.transport",
}
UNUSED = """
_ssl argparse asyncio collections concurrent contextlib ctypes dataclasses datetime difflib email enum fcntl
functools http importlib.metadata importlib.resources inspect json locale logging multiprocessing pathlib
pkgutil queue random re secrets selectors shlex shutil signal socket socketserver ssl subprocess tempfile
textwrap threading tokenize traceback typing urllib.parse urllib.request uuid xml zipfile
"""


def modules_of(version: tuple[int, int], ctl: str, *words: str) -> dict[str, str]:
    """Name to file of everything that is loaded once a command has run."""
    python = installed()[version]
    done = subprocess.run(
        [python, "-ISBXutf8", "-c", TELL_MODULES, ctl, *words], env={}, capture_output=True, text=True, check=True
    )
    return dict(line.split("\t") for line in done.stderr.splitlines())


@pytest.mark.parametrize("version", new_enough(), ids=str)
def test_doctor_loads_what_it_needs_and_nothing_else(version, session, ctl):
    loaded = set(modules_of(version, ctl, "doctor", "--session", session))
    assert {name for name in loaded if name.startswith("termsprawlctl")} == OWN
    unused = set(UNUSED.split())
    if version == (3, 9):
        unused.remove("typing")  # by importlib.util, which runs every archive in any case
    assert loaded & unused == set()


TABLE = {"termsprawlctl.operations", "termsprawlctl.operations.table", "termsprawlctl.operations.guides"}


@pytest.mark.parametrize(("words", "types"), [(["call", "x", "a=1"], TABLE), (["call", "x", "{}"], set())])
def test_call_loads_its_arguments_on_top_and_nothing_else(words, types, session, ctl):
    loaded = set(modules_of(new_enough()[-1], ctl, *words, "--session", session))
    on_top = {"termsprawlctl.cli.commands.call", "termsprawlctl.cli.fields", *types}
    own = {name for name in loaded if name.startswith("termsprawlctl")}
    assert own == OWN - {"termsprawlctl.cli.commands.doctor"} | on_top


@pytest.mark.parametrize("version", new_enough(), ids=str)
@pytest.mark.parametrize("words", [["doctor"], ["call", "x", "a=1"], ["mcp"]], ids=" ".join)
def test_each_python_of_the_build_runs_compiled_modules(version, words, session, ctl):
    argv = [installed()[version], "-ISBXutf8", "-v", ctl, *words, "--session", session]
    done = subprocess.run(
        argv, env={}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import 'termsprawlctl")]
    assert len(lines) >= len(OWN) - 1
    assert [line for line in lines if "Bytecode" not in line] == []


# The bytes


def build(checkout: Path, target: Path, **environment: str) -> str:
    """Build a checkout; returns the SHA-256 of the file."""
    env = {"PATH": os.environ["PATH"], **environment}
    command = [sys.executable, "build.py", "-o", str(target)]
    subprocess.run(command, cwd=checkout, env=env, capture_output=True, check=True)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def checkout(target: Path) -> Path:
    """A copy of what a checkout holds for the build."""
    shutil.copytree(ROOT / "termsprawlctl", target / "termsprawlctl", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "build.py", target)
    (target / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "archive_main.py", target / "tools")
    return target


def test_two_checkouts_give_one_file(tmp_path):
    one = checkout(tmp_path / "one")
    two = checkout(tmp_path / "a longer path with spaces" / "zwei")
    for position, path in enumerate(sorted(two.rglob("*"))):
        # Other times, other modes, and leftovers of running it in place.
        os.utime(path, (position, position))
        if path.is_file():
            path.chmod(0o600)
    (two / "termsprawlctl" / "__pycache__").mkdir()
    (two / "termsprawlctl" / "__pycache__" / "cli.cpython-39.pyc").write_bytes(b"old")
    (two / "termsprawlctl" / "cli.py.orig").write_text("old")
    first = build(one, tmp_path / "1", TZ="UTC", LC_ALL="C", PYTHONHASHSEED="1")
    os.chmod(tmp_path / "1", 0o755)
    second = build(two, tmp_path / "2", TZ="Asia/Tokyo", LC_ALL="C.UTF-8", PYTHONHASHSEED="2", PYTHONOPTIMIZE="1")
    assert first == second
    assert build(one, tmp_path / "3") == first


def test_the_file_is_executable_for_everybody_and_small(ctl, tmp_path):
    before = os.umask(0o077)
    try:
        build(ROOT, tmp_path / "termsprawlctl")
    finally:
        os.umask(before)
    status = (tmp_path / "termsprawlctl").stat()
    assert stat.S_IMODE(status.st_mode) == 0o755
    assert status.st_size < SIZE_LIMIT


# Four systems, each with its sources and the bytecode of what is needed at once.
SIZE_LIMIT = 1 << 20


def test_a_build_that_fails_leaves_the_old_file(tmp_path):
    broken = checkout(tmp_path / "broken")
    (broken / "termsprawlctl" / "cli.py").write_text("def broken(:\n")
    target = tmp_path / "termsprawlctl"
    target.write_text("old")
    with pytest.raises(subprocess.CalledProcessError):
        build(broken, target)
    assert target.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["broken", "termsprawlctl"]


def test_the_archive_holds_the_package_and_nothing_of_the_machine(ctl):
    with zipfile.ZipFile(ctl) as archive:
        names = archive.namelist()
        contents = {name: archive.read(name) for name in names}
        times = {entry.date_time for entry in archive.infolist()}
    assert names == sorted(set(names))
    assert names[0] == "__main__.py"
    assert [name for name in names if not re.fullmatch(r"(termsprawlctl/[\w/]+|__main__)\.(py|pyc|md)", name)] == []
    assert times == {(1980, 1, 1, 0, 0, 0)}
    machine = [str(ROOT).encode(), os.path.expanduser("~").encode(), time.strftime("%Y-%m-%d").encode()]
    assert not [name for name, data in contents.items() if any(word in data for word in machine)]


def test_the_first_line_is_a_shell_that_every_system_has(ctl):
    assert Path(ctl).read_bytes().startswith(b"#!/bin/sh\n")
