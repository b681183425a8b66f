"""One configuration file of somebody else's: read, backed up, replaced in one step.

The file may be a symbolic link (into a folder of dotfiles): the link stays, its target is
replaced. Mode and owner stay, too.
"""

from __future__ import annotations

import contextlib
import os

from ..base.errors import CtlError
from ..base.files import FILE_MODE, is_inside, lock, read_small, remove_quietly, usual_mode, write_atomically
from ..base.ownership import real_path

# Claude Code keeps its history in the same file as its servers: megabytes are usual.
MAX_BYTES = 64 << 20
BACKUP_SUFFIX = ".termsprawlctl-backup"
# Beside a file whose folders were made for it: how many there are. They go with the file again.
MADE_SUFFIX = ".termsprawlctl-folders"
MAX_MADE = 20
# A change takes milliseconds; one that stands still does not keep everybody else out.
TURN_WAIT_S = 3.0


class ConfigFile:
    """The file at a path, as it was when it was read. The methods raise CtlError.

    `text` is "" where there is no file.
    """

    def __init__(self, path: str, *, private: bool) -> None:
        self.path = path
        self._private = private  # whether a new file is for its user only
        try:
            self._real = real_path(path)
        except OSError as error:
            raise CtlError(f"cannot use {path}: {error.strerror}.", "It was left as it is.") from None
        self._made = self._real + MADE_SUFFIX
        self.backup = self._real + BACKUP_SUFFIX
        self._data = self._read(self._real)
        self.exists = self._data is not None
        try:
            self.text = (self._data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise CtlError(f"{path} is not UTF-8 at byte {error.start}.", "It was left as it is.") from None

    def is_read_only(self) -> bool:
        """Whether the file's mode keeps its owner from writing to it; a change replaces it all the same."""
        try:
            return not os.stat(self._real).st_mode & 0o222
        except OSError:
            return False

    def backup_text(self) -> str | None:
        """What the file held before our first change to it; None where there was no file.

        Where it cannot be read nothing is known of that, and this raises.
        """
        data = self._read(self.backup)
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError:
            raise CtlError(f"{self.backup} is not UTF-8.", "Remove it, and try again.") from None

    def write(self, text: str, *, backed_up: bool) -> None:
        """Replace the file; what it held before goes to the backup first, if it should."""

        def change() -> None:
            if self._data is not None and backed_up:
                write_atomically(self.backup, self._data, exact=True)
            self._replace(text.encode("utf-8"))

        self._changing(change)

    def restore(self, text: str | None) -> None:
        """Take our change back: the text from before (None: there was no file); the backup goes."""
        self._changing(lambda: os.unlink(self._real) if text is None else self._replace(text.encode("utf-8")))
        remove_quietly(self.backup)
        if text is None:
            self._remove_folders()

    def _changing(self, action) -> None:
        directory = os.path.dirname(self._real)
        try:
            made = _make_folders(directory)
            if made:
                write_atomically(self._made, str(made).encode())
            with _turn(directory):
                self._check_unchanged()
                action()
        except OSError as error:
            raise CtlError(f"cannot write {self.path}: {error.strerror}.", "It was left as it is.") from None

    def _remove_folders(self) -> None:
        """Remove the folders that were made for the file, as far as they are empty."""
        try:
            text = read_small(self._made)
        except OSError:
            return
        remove_quietly(self._made)
        folder = os.path.dirname(self._real)
        for _ in range(min(int(text) if text.isdigit() and len(text) < 3 else 0, MAX_MADE)):
            try:
                os.rmdir(folder)
            except OSError:
                return
            folder = os.path.dirname(folder)

    def _replace(self, data: bytes) -> None:
        if self._data is None:
            mode = FILE_MODE if self._private else usual_mode()
            write_atomically(self._real, data, mode, self._check_unchanged, exact=True)
            return
        status = os.lstat(self._real)
        if status.st_uid != os.geteuid():
            # The replacement would be ours, and its owner's program might not read it.
            raise OSError(0, "it belongs to another user", self._real)
        write_atomically(self._real, data, status.st_mode & 0o7777, self._check_unchanged, exact=True)

    def _check_unchanged(self) -> None:
        if self._read(self._real) != self._data:
            raise CtlError(f"{self.path} was changed by another program meanwhile; it was left as it is.", "Try again.")

    def _read(self, path: str) -> bytes | None:
        try:
            return read_small(path, MAX_BYTES, exact=True)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CtlError(f"cannot read {path}: {error.strerror}.", "It was left as it is.") from None


def refuse_way_out(path: str, folder: str) -> None:
    """Raise CtlError where a link in a project leads to a file outside of it: it would be changed unseen."""
    real = os.path.realpath(path)
    if not is_inside(real, os.path.realpath(folder)):
        raise CtlError(f"{path} leads out of the project, to {real}; it was left as it is.", "Name it with --file.")


def _make_folders(directory: str) -> int:
    """Make a directory with its parents; returns how many were missing."""
    missing, parent = 0, directory
    while not os.path.lexists(parent):
        missing, parent = missing + 1, os.path.dirname(parent)
    os.makedirs(directory, exist_ok=True)
    return missing


@contextlib.contextmanager
def _turn(directory: str):
    """One of our own processes at a time from the last look at a file until it is replaced.

    Two at once would both find it unchanged, and the second would take the entry of the
    first out again. The lock is the directory's own, so that nothing of it stays behind;
    where it cannot be had, that last look has to do.
    """
    try:
        descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield
        return
    try:
        lock(descriptor, TURN_WAIT_S)
        yield
    finally:
        os.close(descriptor)
