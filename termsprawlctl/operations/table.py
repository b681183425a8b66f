"""THE table of operations: what each is called, takes, does and costs. One declaration each.

The descriptions are read by agents that know nothing else of this program. Plain classes,
because a server that has just been started needs them at once: dataclasses take as long to
load as the whole table.
"""

from __future__ import annotations

from . import guides

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    Kind = Literal["string", "number", "boolean", "strings"]
    Order = Literal["at once", "in turn", "reaching in"]

AGENTS = ("claude", "codex", "gemini", "grok", "openclaude", "opencode", "custom")
# Below the 45 s after which a client gives up, with room for a loaded machine.
MAX_WAIT_MS = 30_000

# When a call may begin whose terminal (nodeId) has other calls under way.
AT_ONCE: Order = "at once"
IN_TURN: Order = "in turn"  # once those that came before it and change the terminal have ended
REACHING_IN: Order = "reaching in"  # once they have begun: it reaches a command that still runs


class Argument:
    """One argument; `choices` are the only strings that are allowed, () for any.

    `extension`: the app does not know it; offered where the host offers its own operations.
    """

    __slots__ = ("choices", "description", "extension", "kind", "name", "required")

    def __init__(
        self,
        name: str,
        kind: Kind,
        description: str,
        choices: tuple[str, ...] = (),
        *,
        required: bool = True,
        extension: bool = False,
    ) -> None:
        self.name = name
        self.kind = kind
        self.description = description
        self.choices = choices
        self.required = required
        self.extension = extension


class Operation:
    """One operation.

    `guide` is the topic that teaches it. `read_only`, `destructive`, `idempotent` and
    `open_world` are MCP's hints. `creates_node`: the nodeId of its answer is a new one
    where none is given.
    `steers`: it types into the terminal nodeId or ends it: refused on the caller's own, and one
    at a time on each. `order` is one of the three above. `extension`: the app does not know it; it
    is offered where the running host's session_info names it, and sent nowhere else. `app_only`:
    an embedded host never has it.
    """

    __slots__ = (
        "app_only",
        "arguments",
        "creates_node",
        "description",
        "destructive",
        "extension",
        "guide",
        "idempotent",
        "name",
        "open_world",
        "order",
        "read_only",
        "steers",
        "title",
    )

    def __init__(  # noqa: PLR0913 - a record: all but the first three are given by name
        self,
        name: str,
        title: str,
        description: str,
        *arguments: Argument,
        guide: str,
        read_only: bool = False,
        destructive: bool = False,
        idempotent: bool = False,
        open_world: bool = False,
        creates_node: bool = False,
        steers: bool = False,
        order: Order = AT_ONCE,
        extension: bool = False,
        app_only: bool = False,
    ) -> None:
        self.name = name
        self.title = title
        self.description = description
        self.arguments = arguments
        self.guide = guide
        self.read_only = read_only
        self.destructive = destructive
        self.idempotent = idempotent
        self.open_world = open_world
        self.creates_node = creates_node
        self.steers = steers
        self.order = order
        self.extension = extension
        self.app_only = app_only


def required(name: str, kind: Kind, description: str, choices: tuple[str, ...] = ()) -> Argument:
    return Argument(name, kind, description, choices)


def optional(name: str, kind: Kind, description: str, choices: tuple[str, ...] = ()) -> Argument:
    return Argument(name, kind, description, choices, required=False)


_TERMINAL = required("nodeId", "string", "Id of a terminal")
_BROWSER = required("nodeId", "string", "Id of a browser")
_IDS = "1 to 100 ids"
_SELECTOR = required("selector", "string", "CSS, for exactly one visible control")
# The bytes are those of a whole message.
_TEXT_LIMIT = "At most 64,000 characters, as JSON 256 KiB"
_APPS_LIMIT = f"{_TEXT_LIMIT} (app: 128 KiB)"
_TIMEOUT = optional("timeoutMs", "number", f"0 to {MAX_WAIT_MS:,} (default)")

_ROWS = (
    Operation(
        "session_info",
        "Session info",
        "Call this first: your nodeId and projectId, and the operations available here.",
        guide="overview",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "guide_read",
        "Read a guide",
        "Read how a surface works before you first use it.",
        required("topic", "string", "", tuple(guides.TOPICS)),
        guide="overview",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "canvas_list",
        "List the canvas",
        "List the nodes: id, type, position, size, group (parentId), data; ended: a terminal that is over.",
        guide="canvas",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "canvas_select",
        "Select nodes",
        "Select nodes, to show the user which you mean.",
        required("nodeIds", "strings", _IDS),
        guide="canvas",
        idempotent=True,
    ),
    Operation(
        "canvas_move",
        "Move a node",
        "Move a node's upper left corner to x, y: pixels, relative to its group if it has one.",
        required("nodeId", "string", ""),
        required("x", "number", ""),
        required("y", "number", ""),
        guide="canvas",
        idempotent=True,
    ),
    Operation(
        "canvas_resize",
        "Resize a node",
        "Resize a node, in pixels: 240 x 140 to 8000 x 8000.",
        required("nodeId", "string", ""),
        required("width", "number", ""),
        required("height", "number", ""),
        guide="canvas",
        idempotent=True,
    ),
    Operation(
        "canvas_group",
        "Group nodes",
        "Put a frame around nodes that are in no group. Their positions become relative to it.",
        required("nodeIds", "strings", _IDS),
        optional("title", "string", ""),
        guide="canvas",
        creates_node=True,
    ),
    Operation(
        "sticky_open",
        "Open a sticky note",
        "Put a note on the canvas.",
        required("text", "string", "At most 64,000 characters"),
        guide="canvas",
        creates_node=True,
    ),
    Operation(
        "browser_open",
        "Open a browser",
        "Open a web page in a new browser. Returns its nodeId; you own it.",
        required("url", "string", "http or https"),
        guide="browser",
        app_only=True,
        open_world=True,
        creates_node=True,
    ),
    Operation(
        "browser_list",
        "List browsers",
        "List the browsers: address, title, owner.",
        guide="browser",
        app_only=True,
        read_only=True,
        idempotent=True,
        open_world=True,
    ),
    Operation(
        "browser_claim",
        "Claim a browser",
        "Become the owner of a browser that has none. Only the owner may navigate, click, type or transfer.",
        _BROWSER,
        guide="browser",
        app_only=True,
        open_world=True,
    ),
    Operation(
        "browser_transfer",
        "Hand over a browser",
        "Give a browser that you own to another agent.",
        _BROWSER,
        required("agentNodeId", "string", "Id of the new owner, from agent_cards"),
        guide="browser",
        app_only=True,
        open_world=True,
    ),
    Operation(
        "browser_navigate",
        "Navigate a browser",
        "Load another address in a browser that you own; then inspect it.",
        _BROWSER,
        required("url", "string", "http or https"),
        guide="browser",
        app_only=True,
        open_world=True,
    ),
    Operation(
        "browser_inspect",
        "Inspect a page",
        "Read a page: address, title, visible text, and the controls with their selectors. Before each click or "
        "typing.",
        _BROWSER,
        guide="browser",
        app_only=True,
        read_only=True,
        idempotent=True,
        open_world=True,
    ),
    Operation(
        "browser_click",
        "Click a control",
        "Click a control in a browser that you own. Inspect before and after.",
        _BROWSER,
        _SELECTOR,
        guide="browser",
        app_only=True,
        open_world=True,
    ),
    Operation(
        "browser_type",
        "Type into a control",
        "Replace the text of an input control in a browser that you own.",
        _BROWSER,
        _SELECTOR,
        required("text", "string", "At most 64,000 characters"),
        guide="browser",
        app_only=True,
        open_world=True,
    ),
    Operation(
        "browser_screenshot",
        "Take a screenshot",
        "Take a PNG picture of a browser. For text, browser_inspect is better.",
        _BROWSER,
        guide="browser",
        app_only=True,
        read_only=True,
        idempotent=True,
        open_world=True,
    ),
    Operation(
        "terminal_open",
        "Open a terminal",
        "Open a shell in the project's folder. Returns its nodeId; reuse it for later commands.",
        optional("title", "string", ""),
        guide="terminal",
        open_world=True,
        creates_node=True,
    ),
    Operation(
        "terminal_read",
        "Read a terminal",
        "Read the end of a terminal's screen and history.",
        _TERMINAL,
        optional("maxChars", "number", "Default 16,000, at most 100,000"),
        guide="terminal",
        read_only=True,
        idempotent=True,
        open_world=True,
    ),
    Operation(
        "terminal_submit",
        "Submit a command",
        "Type a command into a shell at its prompt and press Enter. Does not wait for its end: terminal_read shows "
        "the output.",
        _TERMINAL,
        required("command", "string", _APPS_LIMIT),
        Argument("force", "boolean", "Type whatever reads there", required=False, extension=True),
        guide="terminal",
        destructive=True,
        open_world=True,
        steers=True,
        order=IN_TURN,
    ),
    Operation(
        "terminal_input",
        "Type text",
        "Type exact text into a program that waits for input. Presses no Enter: end with \\r for that.",
        _TERMINAL,
        required("text", "string", _APPS_LIMIT),
        guide="terminal",
        destructive=True,
        open_world=True,
        steers=True,
        order=REACHING_IN,
    ),
    Operation(
        "terminal_interrupt",
        "Interrupt",
        "Press Ctrl-C.",
        _TERMINAL,
        guide="terminal",
        destructive=True,
        open_world=True,
        steers=True,
    ),
    Operation(
        "terminal_external",
        "Show in a window",
        "Show a terminal in a window on the user's desktop too, if the user wants that.",
        _TERMINAL,
        guide="terminal",
        open_world=True,
    ),
    Operation(
        "terminal_close",
        "Close a terminal",
        "End a terminal and all that runs in it, for good. Only those that you opened.",
        _TERMINAL,
        guide="terminal",
        destructive=True,
        open_world=True,
        steers=True,
        order=IN_TURN,
    ),
    Operation(
        "agent_launch",
        "Launch an agent",
        "Start a coding agent in a new terminal, if the user wants one. Returns its nodeId. Only the user can link "
        "it to you, which agent_send needs.",
        required("agent", "string", "", AGENTS),
        guide="agents",
        open_world=True,
        creates_node=True,
    ),
    Operation(
        "agent_status",
        "Agent status",
        "How the project's agents, you included, are connected.",
        guide="agents",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "agent_cards",
        "List agents",
        "List the other agents: id, title, kind, running; linkEnabled: you may send them work.",
        guide="agents",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "agent_send",
        "Send work to an agent",
        "Give a linked agent a task. Returns its id: poll agent_task, up to 15 minutes. Never send work back to "
        "who gave it to you.",
        required("nodeId", "string", "Id of the agent"),
        required("text", "string", "1 to 16,000 characters"),
        required("messageId", "string", "New for each task; repeated with the same text it is the same task"),
        guide="agents",
        steers=True,
        destructive=True,
        open_world=True,
    ),
    Operation(
        "agent_task",
        "Read a task",
        "Read a task: submitted, completed or failed, and its response.",
        required("taskId", "string", ""),
        Argument("waitMs", "number", f"Wait for its end: 0 to {MAX_WAIT_MS:,}", required=False, extension=True),
        guide="agents",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "agent_reply",
        "Reply to a task",
        "Answer a task that was given to you, once.",
        required("taskId", "string", ""),
        required("text", "string", "1 to 16,000 characters"),
        optional("state", "string", "Default completed", ("completed", "failed")),
        guide="agents",
    ),
    Operation(
        "context_read",
        "Read peers' context",
        "Read what linked agents were asked and said lately.",
        guide="context",
        read_only=True,
        idempotent=True,
    ),
    Operation(
        "artifact_open",
        "Open a file",
        "Show a text file or image of the project to the user.",
        required("path", "string", "Absolute path"),
        optional("view", "string", "Default editor; diff: changes by git", ("editor", "diff")),
        guide="artifacts",
        creates_node=True,
    ),
    Operation(
        "terminal_run",
        "Run a command and wait",
        "Run a command in a terminal's shell (bash, zsh, fish, dash at its prompt) and wait for its end. Returns "
        "nodeId, output, exitStatus, durationMs. The shell keeps its directory and variables. If timedOut, the command "
        "goes on: terminal_wait with exit, or terminal_interrupt; screen is left out where output says the same. If "
        "truncated, the middle of the output is left out.",
        optional("nodeId", "string", "Default: a new terminal"),
        required("command", "string", _TEXT_LIMIT),
        _TIMEOUT,
        guide="terminal",
        destructive=True,
        open_world=True,
        creates_node=True,
        steers=True,
        order=IN_TURN,
        extension=True,
    ),
    Operation(
        "terminal_wait",
        "Wait for a terminal",
        "Wait for the first of: a text, a pattern, silence, the end of what runs (exit). Looks at what came since "
        "cursor, else since you last typed there. Returns reason (or timeout) and tail, with exit the exitStatus.",
        _TERMINAL,
        optional("text", "string", "Exact; in one line unless it has newlines"),
        optional("pattern", "string", "Python regular expression; ^ and $ match at lines"),
        optional("idleMs", "number", "Silence in milliseconds"),
        optional("exit", "boolean", ""),
        optional("cursor", "string", ""),
        _TIMEOUT,
        guide="terminal",
        read_only=True,
        idempotent=True,
        open_world=True,
        extension=True,
    ),
    Operation(
        "terminal_since",
        "Read what is new",
        "Read what a terminal wrote after a cursor. Returns output and the next cursor. more: call "
        "again; missed: some is lost; fullScreen: use terminal_read.",
        _TERMINAL,
        optional("cursor", "string", "Of an earlier answer; default all that is kept"),
        guide="terminal",
        read_only=True,
        idempotent=True,
        open_world=True,
        extension=True,
    ),
    Operation(
        "terminal_send",
        "Type if nothing changed",
        "Type text, then press keys, but only if nothing was written since expectRevision and no person types. A "
        "repeated requestId types nothing.",
        _TERMINAL,
        optional("text", "string", f"{_TEXT_LIMIT}; Enter is a key"),
        optional(
            "keys",
            "strings",
            "1 to 100: Enter, Tab, Escape, Up, F5, C-c, M-x, S-Tab",
        ),
        required("expectRevision", "string", "cursor of your last answer"),
        required("requestId", "string", "New for each input, at most 200 characters"),
        guide="terminal",
        destructive=True,
        idempotent=True,
        open_world=True,
        steers=True,
        order=REACHING_IN,
        extension=True,
    ),
)

# name -> Operation, in the order in which they are listed everywhere.
OPERATIONS: dict[str, Operation] = {operation.name: operation for operation in _ROWS}
