"""What has a client call tools of ours without asking its user first, where the client keeps that in a file.

Codex and Gemini CLI keep it in the server's own entry (`Client.allowed`); Claude Code and OpenCode
beside their servers: that is a Rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from ..base.errors import CtlError
from .configfile import ConfigFile
from .dialects import JsonText


@dataclass(frozen=True)
class Rule:
    """`items` have to be in the list at `path` of a file; where there is a `value`, they are keys with it instead.

    `private`: whether a new file is for its user only; `shared`: whether the server's entry is in the file, too.
    """

    file: str
    text: JsonText
    path: tuple[str, ...]
    items: list[str]
    value: str | None = None
    private: bool = True
    shared: bool = False

    def shown(self) -> str:
        """A whole file with nothing else in it."""
        return self.text.shown(self.path, self._content())

    def added(self, text: str) -> str:
        """Raises ValueError where it cannot be put in."""
        if self.value is None:
            return self.text.add_items(text, self.path, self.items)
        there = self.text.read(text, self.path)
        if there is not None and not isinstance(there, dict):
            raise ValueError(f"{'.'.join(self.path)} is not a JSON object")
        return self.text.put(text, self.path, dict.fromkeys(self.items, self.value))

    def removed(self, text: str) -> str:
        """Raises ValueError where it cannot be removed."""
        if self.value is None:
            return self.text.remove_items(text, self.path, self.items)
        for item in self.items:
            if self.text.read(text, (*self.path, item)) == self.value:
                text = self.text.remove(text, (*self.path, item))
        return text

    def _content(self) -> object:
        return self.items if self.value is None else dict.fromkeys(self.items, self.value)


def check(rule: Rule) -> None:
    """Raise CtlError where the rule cannot be put in."""
    _changed(rule, rule.added)


def add(rule: Rule) -> None:
    """Put it in. Raises CtlError."""
    file, text = _changed(rule, rule.added)
    if text != file.text:
        # The backup is the file as it was before anything of ours.
        file.write(text, backed_up=not rule.shared and rule.removed(file.text) == file.text)


def remove(rule: Rule) -> bool:
    """Take it out; whether it was there. Raises CtlError."""
    file, text = _changed(rule, rule.removed)
    if text == file.text:
        return False
    try:
        before = file.backup_text()
        if rule.added(before or "") == file.text:
            file.restore(before)
            return True
        if rule.text.read(before or "", rule.path) is None and rule.text.is_bare(text, rule.path):
            text = rule.text.remove(text, rule.path)
    except (CtlError, ValueError):
        pass  # not known what there was before; what is empty then does no harm
    file.write(text, backed_up=False)
    return True


def _changed(rule: Rule, change: Callable[[str], str]) -> tuple[ConfigFile, str]:
    file = ConfigFile(rule.file, private=rule.private)
    try:
        return file, change(file.text)
    except ValueError as error:
        raise CtlError(f"{rule.file} cannot be changed safely: {error}.", "It was left as it is.") from None
