"""One configuration file of somebody else's: read, backed up, replaced in one step.

The file may be a symbolic link (into a folder of dotfiles): the link stays, its target is
replaced. Mode and owner stay, too.
"""

from __future__ import annotations

import os

from ..errors import CtlError
from ..files import FILE_MODE, read_small, remove_quietly, usual_mode, write_atomically

# Claude Code keeps its history in the same file as its servers: megabytes are usual.
MAX_BYTES = 64 << 20
BACKUP_SUFFIX = ".termsprawlctl-backup"


class ConfigFile:
    """The file at a path, as it was when it was read. The methods raise CtlError.

    `text` is "" where there is no file.
    """

    def __init__(self, path: str, *, private: bool) -> None:
        self.path = path
        self._private = private  # whether a new file is for its user only
        self._real = os.path.realpath(path)
        self.backup = self._real + BACKUP_SUFFIX
        self._data = self._read(self._real)
        self.exists = self._data is not None
        try:
            self.text = (self._data or b"").decode("utf-8")
        except UnicodeDecodeError as error:
            raise CtlError(f"{path} is not UTF-8 at byte {error.start}.", "It was left as it is.") from None

    def backup_text(self) -> str | None:
        """What the file held before our first change to it; None where there was no file.

        Where it cannot be read nothing is known of that, and this raises.
        """
        data = self._read(self.backup)
        try:
            return None if data is None else data.decode("utf-8")
        except UnicodeDecodeError:
            raise CtlError(f"{self.backup} is not UTF-8.") from None

    def write(self, text: str, *, backed_up: bool) -> None:
        """Replace the file; what it held before goes to the backup first, if it should."""
        self._check_unchanged()
        if self._data is not None and backed_up:
            self._changing(lambda: write_atomically(self.backup, self._data))
        self._changing(lambda: self._replace(text.encode("utf-8")))

    def restore(self, text: str | None) -> None:
        """Take our change back: the text from before (None: there was no file); the backup goes."""
        self._check_unchanged()
        self._changing(lambda: os.unlink(self._real) if text is None else self._replace(text.encode("utf-8")))
        remove_quietly(self.backup)

    def _changing(self, action) -> None:
        try:
            action()
        except OSError as error:
            raise CtlError(f"cannot write {self.path}: {error.strerror}.", "It was left as it is.") from None

    def _replace(self, data: bytes) -> None:
        if self._data is None:
            os.makedirs(os.path.dirname(self._real), exist_ok=True)
            mode = FILE_MODE if self._private else usual_mode()
            write_atomically(self._real, data, mode, self._check_unchanged)
            return
        status = os.stat(self._real)
        if status.st_uid != os.geteuid():
            # The replacement would be ours, and its owner's program might not read it.
            raise OSError(0, "it belongs to another user", self._real)
        write_atomically(self._real, data, status.st_mode & 0o7777, self._check_unchanged)

    def _check_unchanged(self) -> None:
        if self._read(self._real) != self._data:
            raise CtlError(f"{self.path} was changed by another program meanwhile; it was left as it is.", "Try again.")

    def _read(self, path: str) -> bytes | None:
        try:
            return read_small(path, MAX_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise CtlError(f"cannot read {path}: {error.strerror}.") from None
