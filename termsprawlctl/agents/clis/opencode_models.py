"""Which model OpenCode should use when nobody chose one.

Its own pick is the first that its catalogue offers, which need not be one that chats and
calls tools. So: a model that the user's configuration or last session names is left to
OpenCode; else the newest of `opencode models` that can do both and is not among the dearer
half, one of the user's own providers before the free ones that come with OpenCode.
"""

from __future__ import annotations

import json
import os
import re

from ..model.arguments import MAX_MODEL
from ..model.reader import number, string
from .flavour import Request

LIST_TIMEOUT_S = 30.0
CONFIG_NAMES = ("opencode.json", "opencode.jsonc", "config.json")
# Comments are allowed there, so it is searched, not parsed. Agents have models, too;
# those are deeper, and do no harm here.
# Blanks alone at a line's start: line ends among them would be looked at from each of them.
NAMES_A_MODEL = re.compile(r'^[ \t]*"model"\s*:\s*"[^"]|[{,]\s*"model"\s*:\s*"[^"]', re.MULTILINE)
BUNDLED_PROVIDER = "opencode"
BUNDLED_DEFAULT = "big-pickle"  # what OpenCode itself uses where nobody is logged in

_chosen: dict[tuple, str] = {}


def choose(request: Request, environment: dict[str, str], ask) -> str:
    """`provider/model`, or an empty string to leave the choice to OpenCode.

    `ask` as for Flavour.default_model; it takes seconds, and is called once for a configuration.
    """
    if any(NAMES_A_MODEL.search(text) for text in _configurations(request.cwd, environment)):
        return ""
    if _recent(environment):
        return ""
    key = tuple(environment.get(name, "") for name in ("HOME", "OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT"))
    if key not in _chosen:
        listing = ask(["models", "--verbose"], LIST_TIMEOUT_S)
        if not listing:
            return ""  # it may tell the next time
        _chosen[key] = best(listing)
    return _chosen[key]


def best(listing: str) -> str:
    """The choice from what `opencode models --verbose` prints; empty when nothing fits."""
    models = [model for model in parse(listing) if _fits(model)]
    own = [model for model in models if model["providerID"] != BUNDLED_PROVIDER]
    bundled = [model for model in models if model["id"] == BUNDLED_DEFAULT]
    models = own or bundled or models
    if not models:
        return ""
    # Not the newest at any price: the dearer half is for who asks for it.
    middle = sorted(_price(model) for model in models)[(len(models) - 1) // 2]
    choice = max(
        (model for model in models if _price(model) <= middle), key=lambda model: string(model.get("release_date"))
    )
    return f"{choice['providerID']}/{choice['id']}"


def _price(model: dict) -> float:
    cost = model.get("cost")
    price = cost.get("output") if isinstance(cost, dict) else None
    return number(price) or 0.0


def parse(listing: str) -> list[dict]:
    """The models in a listing: a name, then its object over several lines, and so on."""
    found = []
    decoder = json.JSONDecoder()
    position = listing.find("{")
    while position >= 0:
        try:
            value, end = decoder.raw_decode(listing, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            if isinstance(value, dict) and _is_word(value.get("id")) and _is_word(value.get("providerID")):
                found.append(value)
        position = listing.find("\n{", end)
        position = position + 1 if position >= 0 else position
    return found


def _is_word(value: object) -> bool:
    """Whether it can be a part of a model's name, which becomes an argument."""
    return isinstance(value, str) and value.isprintable() and 0 < len(value) < MAX_MODEL // 2


def _fits(model: dict) -> bool:
    can = model.get("capabilities")
    if not isinstance(can, dict) or model.get("status") in ("deprecated", "disabled"):
        return False
    sides = [can.get("input"), can.get("output")]
    return can.get("toolcall") is True and all(isinstance(side, dict) and side.get("text") is True for side in sides)


def _configurations(cwd: str, environment: dict[str, str]):
    yield environment.get("OPENCODE_CONFIG_CONTENT", "")
    home = environment.get("HOME") or os.path.expanduser("~")
    config = environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    paths = [environment.get("OPENCODE_CONFIG", "")]
    paths += [os.path.join(config, "opencode", name) for name in CONFIG_NAMES]
    folder = os.path.realpath(cwd)
    while True:
        paths += [os.path.join(folder, name) for name in CONFIG_NAMES[:2]]
        paths += [os.path.join(folder, ".opencode", name) for name in CONFIG_NAMES[:2]]
        if folder == os.path.dirname(folder):
            break
        folder = os.path.dirname(folder)
    for path in paths:
        yield _text(path)


def _recent(environment: dict[str, str]) -> bool:
    home = environment.get("HOME") or os.path.expanduser("~")
    state = environment.get("XDG_STATE_HOME") or os.path.join(home, ".local", "state")
    try:
        value = json.loads(_text(os.path.join(state, "opencode", "model.json")) or "{}")
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and bool(value.get("recent"))


def _text(path: str) -> str:
    from ...base.files import read_small

    if not path:
        return ""
    try:
        return read_small(path).decode("utf-8", "replace")
    except OSError:
        return ""
