"""The guides for agents: one Markdown text per surface, in guides/ beside this module.

Read through this module's own loader, which finds them in a folder as well as in the
built archive, and costs no import.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# topic: one line on what it teaches; in the order of the `guide_read` argument.
TOPICS = {
    "overview": "how to call operations, what answers and errors mean, and what to do first",
    "browser": "drive web pages on the canvas: claim, inspect, click, type, screenshot",
    "terminal": "run commands in terminals and read their output",
    "canvas": "list, move, resize, select and group what is on the canvas; leave notes",
    "context": "read what linked agents were asked and said",
    "agents": "start agents, give tasks to linked ones, and answer theirs",
    "artifacts": "show the user a file of the project, in an editor or as a diff",
}
# What has been read stays: a long-running process must not depend on a file that an
# upgrade may replace.
_texts: dict[str, str] = {}


def read(topic: str) -> str:
    """The guide's Markdown text. Raises ValueError, naming the topics, when there is none of this name."""
    if topic not in TOPICS:
        raise ValueError(f"there is no guide named {topic!r}; topics: {', '.join(TOPICS)}")
    return _read(topic)


def instructions(*, extended: bool) -> str:
    """What a model is told that has the operations as MCP tools, before it uses any.

    `extended`: those of the embedded host, else the app's.
    """
    ours, others = ("[host] ", "[app] ") if extended else ("[app] ", "[host] ")
    lines = _read("instructions").split("\n")
    return "\n".join(line.removeprefix(ours) for line in lines if not line.startswith(others))


def _read(name: str) -> str:
    if name not in _texts:
        loader: Any = __spec__.loader
        # Inside an archive by its own name, which holds wherever the archive is opened.
        folder = __package__.replace(".", "/") if hasattr(loader, "archive") else os.path.dirname(__file__)
        _texts[name] = loader.get_data(os.path.join(folder, "guides", f"{name}.md")).decode("utf-8")
    return _texts[name]
