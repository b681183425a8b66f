"""What the MCP server serves: a provider of tools, which never sees a frame.

Tools are plain dicts in MCP's shape (name, title, description, inputSchema, optional
outputSchema, annotations with all four hints). Results are plain dicts, too:
`{"content": [blocks], "isError": bool}` and, where a tool has an outputSchema,
`structuredContent`. The server adds what a revision wants on top and passes the rest
on as it is.

A provider writes nothing to descriptors 0, 1 and 2; what is meant for the log goes
through `mcp.log.log(text)`, which never blocks.
"""

from __future__ import annotations

import threading


class ProviderFault(Exception):
    """The provider cannot serve; the text becomes a JSON-RPC error (-32603)."""

    code = -32603
    data: object = None


class CallFault(ProviderFault):
    """A call that ends with a JSON-RPC error of the provider's choice instead of a result.

    `code` is the JSON-RPC error code, `data` any JSON value or None for no data.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Context:
    """One call as its provider sees it.

    `cancelled` is set when the client cancels, goes away, or the server ends; `last_try`
    then, too, and as soon as the client has sent its last: what is under way still goes
    on and is answered, but nothing is tried again.
    """

    def __init__(self, cancelled: threading.Event | None = None) -> None:
        self.cancelled = cancelled or threading.Event()
        self.last_try = threading.Event()
        self._on_cancel = None
        self._lock = threading.Lock()

    def progress(self, message: str, progress: float | None = None, total: float | None = None) -> None:
        """Tell the client how far the call is; dropped where it did not ask for that.

        Without `progress` the server counts by itself; values that do not rise are raised.
        May be called as often as there is news, from any thread: the server sends about two
        a second and always the newest.
        """

    def on_cancel(self, action) -> None:
        """Have `action()` called once when the call is cancelled, at once if it is already.

        For what cannot wait on `cancelled`, such as a thread inside a socket call. It runs
        in the server's reading thread: it must neither block nor raise. The latest wins;
        None takes it back.
        """
        with self._lock:
            self._on_cancel = action
        if self.cancelled.is_set():
            self._run_on_cancel()

    def cancel(self) -> None:
        """Set both events and run the action. For the server, and for tests of a provider."""
        self.cancelled.set()
        self.last_try.set()
        self._run_on_cancel()

    def _run_on_cancel(self) -> None:
        with self._lock:
            action, self._on_cancel = self._on_cancel, None
        if action is not None:
            action()


class Provider:
    """Base of all providers; the attributes are the system's choices."""

    name = "termsprawlctl"  # serverInfo.name
    version = "1.0.0"  # serverInfo.version
    ordered = True  # calls run one at a time in order of arrival
    max_running = 1  # how many calls run at once where they are not ordered
    max_line_bytes = 4 << 20  # longer input lines are refused unread
    any_tool_name = False  # pass unknown tool names on instead of answering -32602
    any_arguments = False  # pass arguments that are no object on instead of answering -32602
    finish_in_flight_s: float | None = None  # on EOF: how long calls may go on; None: until they end
    # The session bridge keeps its original's answers to lines that are not JSON
    # (-32603 with id null, scalars and arrays ignored) instead of -32700 and -32600.
    original_frame_errors = False
    list_ttl_ms = 3_600_000  # how long a client may cache tools/list; 3,600,000 for a fixed list
    list_scope = "public"  # or "private", when the list depends on who asks

    def instructions(self) -> str:
        """What a model should know before it uses the tools; may be empty. Must not block."""
        return ""

    def greet(self, context: Context) -> None:
        """Called by each `initialize` before it is answered, in turn with the calls; may block.

        Raises ProviderFault to fail it. Who waits for somebody else to come back waits on
        `context.last_try`: once it is set, waiting any longer is of no use.
        """

    def tools(self) -> list[dict]:
        """The tools in their fixed order. May block only while `tools_block()` says so."""
        raise NotImplementedError

    def tools_block(self) -> bool:
        """Whether tools() has to ask somebody now; it then runs in a thread of its own."""
        return False

    def find_tool(self, name: str) -> dict | None:
        """The tool of this name, None when there is none. Must not block."""
        return next((tool for tool in self.tools() if tool["name"] == name), None)

    def prepare(self) -> None:
        """Called once, in turn with the calls: behind the first tools/list, or before, when the client is quiet.

        For loading whatever is not loaded yet: the file that this program runs from may
        be replaced by a newer one while the server lives.
        """

    def call(self, name: str, arguments: dict, context: Context) -> dict:
        """Run a tool. Blocks; runs in a thread of its own. Any exception becomes -32603."""
        raise NotImplementedError

    def close(self) -> None:
        """Called once at the end, whatever ended the server: free everything, end all children."""
