"""What arguments can be: operations and their fields, topics, and the ids of the running session's nodes."""

from __future__ import annotations

import contextlib

from ...app import transport
from ...app.discovery import session_file
from ...base.errors import NoSession
from ...base.layout import is_id
from ...base.text import harmless
from ...operations import guides
from ...operations.table import OPERATIONS
from ..session import host_session

# A shell that waits is worse than one that knows less.
LIVE_DEADLINE_S = 0.2
FILES, FOLDERS = "files", "folders"


class Value:
    """A word that may stand there, and what it means; a plain class, for a shell waits."""

    __slots__ = ("about", "word")

    def __init__(self, word: str, about: str) -> None:
        self.word = word
        self.about = about


class Answer:
    """files: "" or FILES or FOLDERS, for what the shell knows better."""

    __slots__ = ("files", "values")

    def __init__(self, values: list[Value], files: str) -> None:
        self.values = values
        self.files = files


class Values:
    """`session` is the path given with --session, None for the environment's."""

    def __init__(self, environment) -> None:
        self._environment = environment
        self.session: str | None = None

    def operations(self) -> list[Value]:
        """The names of the table."""
        return [Value(one.name, one.title) for one in OPERATIONS.values()]

    def topics(self) -> list[Value]:
        """The guides."""
        return [Value(name, about) for name, about in guides.TOPICS.items()]

    def terminals(self) -> list[Value]:
        """Ids of nodes with a terminal."""
        return self.nodes("terminal")

    def nodes(self, kind: str | None = None) -> list[Value]:
        """Ids on the session's canvas; none when nobody answers in time.

        The canvas is a file of the project's folder. What is no id would be typed into a shell as it is.
        """
        path = session_file(self.session, self._environment)
        if path is None and self.session is None:
            with contextlib.suppress(NoSession):
                found = host_session(self._environment)
                path = found.path if found else None
        if not path:
            return []
        nodes = transport.call(path, "canvas_list", deadline_s=LIVE_DEADLINE_S).get("value")
        return [
            Value(node["id"], _about(node))
            for node in (nodes if isinstance(nodes, list) else ())
            if isinstance(node, dict) and is_id(node.get("id")) and kind in (None, node.get("type"))
        ]

    def fields(self, given: list[str], current: str) -> Answer:
        """What may follow `call OPERATION`: `given` is the operation and the fields before the current word."""
        operation = OPERATIONS.get(given[0]) if given else None
        if operation is None or any("=" not in word for word in given[1:]):
            return Answer([], "")
        used = {word.partition("=")[0].rstrip(":") for word in given[1:]}
        open_arguments = [argument for argument in operation.arguments if argument.name not in used]
        name, equals, _ = current.partition("=")
        if not equals:
            return Answer([_field(argument) for argument in open_arguments], "")
        for argument in open_arguments:
            if argument.name == name.rstrip(":"):
                known = [Value(f"{name}={value.word}", value.about) for value in self._known(operation.name, argument)]
                return Answer(known, FILES if argument.name == "path" else "")
        return Answer([], "")

    def _known(self, operation: str, argument) -> list[Value]:
        if argument.name.endswith(("nodeId", "NodeId")):
            browser = operation.startswith("browser_") and argument.name == "nodeId"
            terminal = operation.startswith("terminal_") or argument.name == "agentNodeId"
            return self.nodes("browser" if browser else "terminal" if terminal else None)
        words = ("true", "false") if argument.kind == "boolean" else argument.choices
        return [Value(word, "") for word in words]


def _field(argument) -> Value:
    sign = "=" if argument.kind == "string" else ":="
    need = "" if argument.required else ", optional"
    return Value(f"{argument.name}{sign}", ": ".join(filter(None, (argument.kind + need, argument.description))))


def _about(node: dict) -> str:
    data = node.get("data")
    title = data.get("title") if isinstance(data, dict) else None
    # Shells show it in a list of their own.
    return harmless(" ".join(str(word) for word in (node.get("type"), title) if word))
