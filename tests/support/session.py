"""One run of the tests on its machine: a folder of its own for all that it writes, and nothing left elsewhere.

Everything below happens in the process that was started; workers of pytest-xdist inherit it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import stat
import tempfile
import time
from pathlib import Path

# Short: the path of a socket has to fit into some 100 bytes, and a line of a terminal into as many columns.
PREFIX = "tc-"
ROOT_VARIABLE = "CTL_TESTS_ROOT"
KEPT_S = 86400.0
# What a program that has been stopped may still need to tidy up.
SETTLE_S = 10.0
# What the program, or a test, makes outside the run's own folder.
OURS = ("termsprawl", "tui-", "faults-", "sec-", "chosen-")
OF_KILLED_HOSTS = "termsprawlctl-"


class Session:
    """The surroundings of one run; `start` makes them, `finish` says what was left outside of them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._handle = os.open(root, os.O_RDONLY)
        fcntl.flock(self._handle, fcntl.LOCK_EX)
        self._before = _strays()

    @classmethod
    def start(cls) -> Session:
        """Make the folder, and let HOME and TMPDIR lie in it."""
        _sweep()
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir="/tmp"))
        root.chmod(0o711)  # other users of the machine have parts in some tests
        session = cls(root)
        for variable, name, mode in (("HOME", "home", 0o700), ("TMPDIR", "tmp", 0o1777)):
            (root / name).mkdir()
            (root / name).chmod(mode)
            os.environ[variable] = str(root / name)
        tempfile.tempdir = None
        os.environ[ROOT_VARIABLE] = str(root)
        return session

    def finish(self) -> tuple[list[str], list[str]]:
        """What was left outside of the tests' own folders, once all of it had time to go: (by this run, by somebody).

        A name in /tmp does not say which of several runs on a machine it is from.
        """
        end_s = time.monotonic() + SETTLE_S
        while True:
            inside = {str(path) for name in ("home", "tmp") for path in (self.root / name).iterdir()}
            # A host that a test has killed leaves the directory for its scripts, where its own has an odd path.
            killed = {path for path in inside if os.path.basename(path).startswith(OF_KILLED_HOSTS)}
            surely, perhaps = sorted(inside - killed), sorted(killed | (_strays() - self._before))
            if not (surely or perhaps) or time.monotonic() > end_s:
                return surely, perhaps
            time.sleep(0.1)

    def remove(self) -> None:
        os.close(self._handle)
        _remove(self.root)


def basetemp(worker: str | None) -> str:
    """Where this process keeps its tests' folders."""
    return os.path.join(os.environ[ROOT_VARIABLE], (worker or "gw").removeprefix("gw") or "t")


def be_plain() -> None:
    """Take away what children would inherit of whoever started the tests: a umask, and the signal that nohup ignores.

    Tests that are about either set it themselves.
    """
    os.umask(0o022)
    if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN or "CTL_TESTS_NOHUP" in os.environ:
        # Not the default: this process goes on when its terminal goes, and a handler is not inherited.
        os.environ["CTL_TESTS_NOHUP"] = "1"
        signal.signal(signal.SIGHUP, lambda *_: None)


def _strays() -> set[str]:
    """What lies outside the folders of runs and may be the program's: in /tmp, in the user's real home."""
    found = {f"/tmp/{name}" for name in os.listdir("/tmp") if name.startswith(OURS) and _is_mine(f"/tmp/{name}")}
    home = pwd.getpwuid(os.getuid()).pw_dir
    for folder in (home, *(os.path.join(home, name) for name in (".config", ".local/share", ".cache", ".local/state"))):
        with contextlib.suppress(OSError):
            found.update(os.path.join(folder, name) for name in os.listdir(folder) if "termsprawl" in name)
    return found


def _is_mine(path: str) -> bool:
    with contextlib.suppress(OSError):
        return os.lstat(path).st_uid in (os.getuid(), 65534)
    return False


def _sweep() -> None:
    """Remove what failed runs kept for their users, a day later."""
    for path in Path("/tmp").glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            is_old = time.time() - status.st_mtime > KEPT_S
            if not is_old or status.st_uid != os.getuid() or not stat.S_ISDIR(status.st_mode):
                continue
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path)
            finally:
                os.close(handle)


def _remove(folder: Path) -> None:
    """Remove a folder whatever the rights are that tests have left in it."""

    def allow(function, path, _fault) -> None:
        with contextlib.suppress(OSError):
            os.chmod(os.path.dirname(path), 0o700)
            if function in (os.rmdir, os.unlink):
                function(path)
            else:  # a directory that cannot be listed or entered
                os.chmod(path, 0o700)
                shutil.rmtree(path)

    shutil.rmtree(folder, onerror=allow)
