"""What the MCP server serves: a provider of tools, which never sees a frame.

Tools are plain dicts in MCP's shape (name, description, inputSchema, and where there is
something to say title, outputSchema, annotations). Results are plain dicts, too:
`{"content": [blocks], "isError": bool}` and, where a tool has an outputSchema,
`structuredContent`. The server adds what a revision wants on top and passes the rest
on as it is.

A provider writes nothing to descriptors 0, 1 and 2; what is meant for the log goes
through `base.log.log(text)`, which never blocks.
"""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Json = dict[str, Any]


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


class Question:
    """A question to the client's user. `answer` is None while it is open, then the option that they chose, "" for none.

    `alone`: the call has been answered with the question, so nobody waits for its result until the client comes
    back, which it may never do.
    """

    __slots__ = ("_on_withdrawal", "alone", "answer")

    def __init__(self, on_withdrawal: Callable[[Question], object] | None = None) -> None:
        self.answer: str | None = None
        self.alone = False
        self._on_withdrawal = on_withdrawal

    def look(self) -> str | None:
        """The answer, if there is one by now."""
        return self.answer

    def settle(self, answer: str) -> None:
        """It is answered, or will not be; the first time counts."""
        if self.answer is None:
            self.answer = answer

    def withdraw(self) -> None:
        """Nobody wants to know any more."""
        if self.answer is None:
            self.settle("")
            if self._on_withdrawal is not None:
                self._on_withdrawal(self)


class Turn:
    """When a call may begin beside others.

    Those of one `key` begin in the order in which they came, each once those before it have
    ended. One that `reaches_in` waits only until those before it have begun (Context.begun).
    """

    __slots__ = ("key", "reaches_in")

    def __init__(self, key: str, *, reaches_in: bool = False) -> None:
        self.key = key
        self.reaches_in = reaches_in


class Context:
    """One call as its provider sees it.

    `cancelled` is set when the client cancels, goes away, or the server ends; `last_try`
    then, too, and as soon as the client has sent its last: what is under way still goes
    on and is answered, but nothing is tried again.
    """

    def __init__(self, cancelled: threading.Event | None = None) -> None:
        self.cancelled = cancelled or threading.Event()
        self.last_try = threading.Event()
        self._on_cancel: Callable[[], object] | None = None
        self._lock = threading.Lock()

    def progress(self, message: str, progress: float | None = None, total: float | None = None) -> None:
        """Tell the client how far the call is; dropped where it did not ask for that.

        Without `progress` the server counts by itself; values that do not rise are raised.
        May be called as often as there is news, from any thread: the server sends about two
        a second and always the newest.
        """

    def step(self, label: str) -> None:
        """Tell the client what the call does now. Unlike with progress(), none is left out:

        steps that come faster than they may be sent are sent together. The same step again
        is sent again only where nothing waits to be sent.
        """

    def ask(self, message: str, options: list[tuple[str, str]]) -> Question | None:  # noqa: ARG002
        """Ask the client's user to choose one of the options, (value, title) each. Never blocks.

        None where the client has no way to ask, or nobody is there any more.
        """
        return None

    def begun(self) -> None:
        """The call does what it does and only waits from now on: calls that reach in may begin."""

    def on_cancel(self, action: Callable[[], object] | None) -> None:
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
    """A name and version (serverInfo), instructions, tools, and call(); the rest has a default."""

    name = "termsprawlctl"
    version = "1.0.0"

    def instructions(self) -> str:
        """What a model should know before it uses the tools; may be empty. Must not block."""
        return ""

    def tools(self) -> list[Json]:
        """The tools in their fixed order. May block only while `tools_block()` says so."""
        raise NotImplementedError

    def call(self, name: str, arguments: Json, context: Context) -> Json:
        """Run a tool. Blocks; runs in a thread of its own. Any exception becomes -32603."""
        raise NotImplementedError

    def find_tool(self, name: str) -> Json | None:
        """The tool of this name, None when there is none. Must not block."""
        return next((tool for tool in self.tools() if tool["name"] == name), None)

    def tools_block(self) -> bool:
        """Whether tools() has to ask somebody now; it then runs in a thread of its own."""
        return False

    def turn(self, name: str, arguments: Json) -> Turn | None:  # noqa: ARG002 - for those that have an order
        """When a call may begin where several run at once; None: at once. Must not block."""
        return None

    def on_initialize(self, context: Context) -> None:
        """Called by each `initialize` before it is answered; may block if the options say so.

        Raises ProviderFault to fail it. Who waits for somebody else to come back waits on
        `context.last_try`: once it is set, waiting any longer is of no use.
        """

    def prepare(self) -> None:
        """Called once: behind the first tools/list, or before, when the client is quiet.

        For loading whatever is not loaded yet: the file that this program runs from may
        be replaced by a newer one while the server lives.
        """

    def close(self) -> None:
        """Called once at the end, whatever ended the server: free everything, end all children."""
