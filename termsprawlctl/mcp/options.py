"""What one server needs of the wire that is not the protocol's: limits, and ways of its original."""

from __future__ import annotations


class Options:
    """How serve() serves a provider; the provider itself sees none of it.

    `max_line_bytes`: longer lines are refused unread. `max_running`: how many calls run at
    once; with 1 they run in order of arrival. `finish_in_flight_s`: at the end of the input,
    how long calls may go on; None: until they end. `any_tool_name`: names that tools() does
    not have are passed on instead of answered with -32602; `any_arguments`: arguments that
    are no object, too. `original_frame_errors`: a line that is not JSON is answered with
    -32603 and id null, and a lone string or number ignored, as the session bridge's original
    does it. `list_ttl_ms`: how long a client may cache tools/list; `list_is_private`: it
    depends on who asks. `initialize_waits`: on_initialize() may block.
    """

    __slots__ = (
        "any_arguments",
        "any_tool_name",
        "finish_in_flight_s",
        "initialize_waits",
        "list_is_private",
        "list_ttl_ms",
        "max_line_bytes",
        "max_running",
        "original_frame_errors",
    )

    def __init__(  # noqa: PLR0913 - a record: all by name
        self,
        *,
        max_line_bytes: int = 4 << 20,
        max_running: int = 1,
        finish_in_flight_s: float | None = None,
        any_tool_name: bool = False,
        any_arguments: bool = False,
        original_frame_errors: bool = False,
        list_ttl_ms: int = 3_600_000,
        list_is_private: bool = False,
        initialize_waits: bool = False,
    ) -> None:
        self.max_line_bytes = max_line_bytes
        self.max_running = max_running
        self.finish_in_flight_s = finish_in_flight_s
        self.any_tool_name = any_tool_name
        self.any_arguments = any_arguments
        self.original_frame_errors = original_frame_errors
        self.list_ttl_ms = list_ttl_ms
        self.list_is_private = list_is_private
        self.initialize_waits = initialize_waits
