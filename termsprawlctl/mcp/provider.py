"""What the MCP server serves: a provider of tools, which never sees a frame.

Tools are plain dicts in MCP's shape (name, title, description, inputSchema, optional
outputSchema, annotations with all four hints). Results are plain dicts, too:
`{"content": [blocks], "isError": bool}` and, where a tool has an outputSchema,
`structuredContent`.
"""

from __future__ import annotations

import threading


class ProviderFault(Exception):
    """The provider cannot serve; the text becomes a JSON-RPC error (-32603) of the handshake."""


class Context:
    """One call as its provider sees it.

    `cancelled` is set when the client cancels, goes away, or the server ends.
    """

    def __init__(self, cancelled: threading.Event | None = None) -> None:
        self.cancelled = cancelled or threading.Event()

    def progress(self, message: str, progress: float | None = None, total: float | None = None) -> None:
        """Tell the client how far the call is; dropped where it did not ask for that.

        Without `progress` the server counts by itself; values that do not rise are raised.
        """


class Provider:
    """Base of all providers; the attributes are the system's choices."""

    name = "termsprawlctl"  # serverInfo.name
    version = "1.0.0"  # serverInfo.version
    ordered = True  # calls run one at a time in order of arrival
    max_running = 1  # how many calls run at once where they are not ordered
    max_line_bytes = 4 << 20  # longer input lines are refused unread
    any_tool_name = False  # pass unknown tool names on instead of answering -32602
    finish_in_flight_s: float | None = None  # on EOF: how long calls may go on; None: until they end
    # The session bridge keeps its original's answers to lines that are not JSON
    # (-32603 with id null, scalars and arrays ignored) instead of -32700 and -32600.
    original_frame_errors = False
    list_ttl_ms = 3_600_000  # how long a client may cache tools/list; 3,600,000 for a fixed list
    list_scope = "public"  # or "private", when the list depends on who asks

    def instructions(self) -> str:
        """What a model should know before it uses the tools; may be empty."""
        return ""

    def greet(self) -> None:
        """Called by each `initialize` before it is answered. Raises ProviderFault to fail it."""

    def tools(self) -> list[dict]:
        """The tools in their fixed order."""
        raise NotImplementedError

    def call(self, name: str, arguments: dict, context: Context) -> dict:
        """Run a tool. Blocks; runs in a thread of its own. Any exception becomes -32603."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once at the end, whatever ended the server: free everything, end all children."""
