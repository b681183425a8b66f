"""`--version --verbose`: what this file carries."""

from __future__ import annotations

import hashlib
import sys

from ..base.errors import CtlError
from ..base.program import program_file


def carried() -> str:
    """Lines: the Pythons whose bytecode is in the file, the one that runs it, the file's size and checksum."""
    running = ".".join(map(str, sys.version_info[:3]))
    loader = getattr(sys.modules[__name__.partition(".")[0]], "__loader__", None)
    lines = [
        f"bytecode  {getattr(loader, 'carried', '') or 'none'}",
        f"python    {sys.implementation.name} {running}, {sys.executable}",
    ]
    try:
        path = program_file()
        with open(path, "rb") as stream:
            data = stream.read()
        lines += [f"file      {path}, {len(data)} bytes", f"sha256    {hashlib.sha256(data).hexdigest()}"]
    except (CtlError, OSError):
        lines.append("file      unknown: this runs from its sources")
    return "".join(f"{line}\n" for line in lines)
