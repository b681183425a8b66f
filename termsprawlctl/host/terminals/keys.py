"""Names of keys as agents write them, and as tmux takes them."""

from __future__ import annotations

import re

from ...base.errors import CtlError

_NAMES = {
    "enter": "Enter",
    "return": "Enter",
    "tab": "Tab",
    "backtab": "BTab",
    "btab": "BTab",
    "escape": "Escape",
    "esc": "Escape",
    "space": "Space",
    "backspace": "BSpace",
    "bspace": "BSpace",
    "up": "Up",
    "down": "Down",
    "left": "Left",
    "right": "Right",
    "home": "Home",
    "end": "End",
    "pageup": "PageUp",
    "pgup": "PageUp",
    "pagedown": "PageDown",
    "pgdn": "PageDown",
    "insert": "IC",
    "ic": "IC",
    "delete": "DC",
    "del": "DC",
    "dc": "DC",
    **{f"f{number}": f"F{number}" for number in range(1, 13)},
}
_MODIFIERS = {"c": "C", "ctrl": "C", "control": "C", "m": "M", "alt": "M", "meta": "M", "s": "S", "shift": "S"}
_MODIFIER = re.compile(r"([A-Za-z]+)[-+](?=.)")
# What a terminal has a control character for.
_CONTROL = re.compile(r"[a-z@\[\\\]^_?]")


def tmux_keys(names: list[str]) -> list[str]:
    """The keys by tmux's names. Raises CtlError for one that is no key: tmux would type its letters."""
    return [_tmux_key(name) for name in names]


def _tmux_key(name: str) -> str:
    modifiers, rest = [], name
    while True:
        match = _MODIFIER.match(rest)
        if match is None or match[1].lower() not in _MODIFIERS:
            break
        modifiers.append(_MODIFIERS[match[1].lower()])
        rest = rest[match.end() :]
    key = _NAMES.get(rest.lower())
    if key is None and len(rest) == 1 and set(modifiers) == {"C"}:
        key = rest.lower() if _CONTROL.fullmatch(rest.lower()) else None
    elif key is None and len(rest) == 1 and set(modifiers) == {"M"}:
        key = rest if "!" <= rest <= "~" else None
    if key == "Tab" and modifiers == ["S"]:
        return "BTab"
    if key is None or len(set(modifiers)) < len(modifiers):
        raise CtlError(
            f"There is no key named {name[:40]!r}.",
            "Keys are Enter, Tab, Escape, Space, Backspace, Up, Down, Left, Right, Home, End, PageUp, PageDown, "
            "Insert, Delete, F1 to F12, each also with C-, M- or S- before it, and C-a or M-a for any letter. "
            "Send characters as text.",
        )
    return "".join(f"{modifier}-" for modifier in modifiers) + key
