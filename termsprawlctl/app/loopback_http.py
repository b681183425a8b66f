"""http.client for loopback: loaded without TLS, without the mail library and without URL parsing.

Those three are imported by http.client for HTTPS, for reading headers and for absolute
request targets; they are most of its import time and a third of a whole call. A private
copy of the module is loaded in which small stand-ins take their places. Nobody else is
affected: sys.modules keeps, or later gets, the ordinary http.client. A Python that does
not let a module have its own `__import__` loads the real three, and all works as well.
"""

from __future__ import annotations

import builtins
import importlib.util
from types import ModuleType


class _Headers:
    """Header fields by name in any case; the first one of a name counts."""

    def __init__(self) -> None:
        self._fields: dict[str, str] = {}

    def get(self, name: str, default=None):
        return self._fields.get(name.lower(), default)

    def add(self, line: str) -> None:
        name, colon, value = line.partition(":")
        if colon:
            self._fields.setdefault(name.strip().lower(), value.strip())


class _HeaderParser:
    """What http.client uses of email.parser.Parser."""

    def __init__(self, _class=_Headers) -> None:
        self._class = _class

    def parsestr(self, text: str) -> _Headers:
        headers = self._class()
        for line in text.split("\n"):
            if line[:1] not in (" ", "\t"):  # the continuation of a value that nobody asks for
                headers.add(line)
        return headers


def _module(name: str, **members) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(members)
    return module


def _load() -> ModuleType:
    email = _module(
        "email",
        parser=_module("email.parser", Parser=_HeaderParser),
        message=_module("email.message", Message=_Headers),
    )
    # urlsplit is for targets that begin with http; ours begin with a slash.
    stand_ins = {
        "email.parser": email,
        "email.message": email,
        "urllib.parse": _module("urllib.parse", urlsplit=None),
    }

    def import_module(name, *context):
        if name == "ssl":
            raise ImportError("loopback needs no TLS")  # http.client takes this for a Python without it
        return stand_ins.get(name) or builtins.__import__(name, *context)

    spec = importlib.util.find_spec("http.client")
    module = importlib.util.module_from_spec(spec)
    module.__dict__["__builtins__"] = {**builtins.__dict__, "__import__": import_module}
    spec.loader.exec_module(module)
    return module


http_client = _load()
