"""The file that this program runs from: its path, and running to the end from the very file that was started.

Modules are loaded when they are needed. A server lives for days, and would otherwise read
parts of itself from whatever lies at its path by then.
"""

from __future__ import annotations

import os
import sys

from .errors import CtlError

_PACKAGE = __name__.partition(".")[0]
_pinned: list[int] = []  # the descriptor, once there is one


def pin() -> bool:
    """Load all further modules from the archive as it is now, by an open descriptor.

    Returns whether that is so: not for a checkout, and not where there is no /proc.
    """
    loader = sys.modules[_PACKAGE].__loader__
    archive = getattr(loader, "archive", None)
    if archive is None:
        return False
    import zipimport

    try:
        descriptor = os.open(archive, os.O_RDONLY)
    except OSError:
        return False
    pinned = f"/proc/self/fd/{descriptor}"
    try:
        os.stat(pinned)
        # The table of contents that is loaded already, which keeps the modules' own paths as they are.
        zipimport.zipimporter(archive)
        contents = zipimport._zip_directory_cache  # type: ignore[attr-defined] # noqa: SLF001 - there is no public way
        contents[pinned] = contents[archive]
    except (OSError, AttributeError, KeyError):
        os.close(descriptor)
        return False

    def importer(path: str) -> zipimport.zipimporter:
        if path == archive or path.startswith(archive + os.sep):
            return zipimport.zipimporter(pinned + path[len(archive) :])
        raise ImportError(path)

    if loader is not None and hasattr(loader, "source"):
        loader.source = pinned  # what is there as bytecode
    sys.path_hooks.insert(0, importer)  # type: ignore[arg-type] # typeshed asks for what zipimporter lost in 3.12
    for path in [path for path in sys.path_importer_cache if path.startswith(archive)]:
        del sys.path_importer_cache[path]
    _pinned.append(descriptor)
    return True


def for_children(root: str) -> tuple[str, list[int]]:
    """Where another Python finds this very package, and the descriptors that it has to inherit for that.

    `root` is the place of the package for one that is started from where nothing is pinned.
    """
    return (f"/proc/self/fd/{_pinned[0]}", _pinned[:1]) if _pinned else (root, [])


def program_file() -> str:
    """The absolute path of the built file, a symlink to it left as it is.

    Raises CtlError when the code runs from its sources: shells and services that are
    given a path need one file.
    """
    path = os.path.abspath(sys.argv[0])
    if path.endswith(".py") or not os.path.isfile(path):
        raise CtlError("this command needs the built file.", "Run `make build`, then use dist/termsprawlctl.")
    return path


def own_argv(*words: str) -> list[str]:
    """An argv that starts this same file with this same Python."""
    return [sys.executable, "-ISBXutf8", program_file(), *words]
