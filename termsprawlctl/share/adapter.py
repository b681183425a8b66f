"""The two tools of a shared TUI as a provider for MCP clients."""

from __future__ import annotations

import os

from ..base import jsontext
from ..base.log import log
from ..mcp.options import Options
from ..mcp.provider import Context, Provider
from . import client, endpoint, wire

# No "format" beside the pattern: not every client knows that of uuids.
_UUID = {"type": "string", "pattern": wire.UUID_PATTERN}
_SESSION_ID = {"type": "string", "pattern": wire.SESSION_ID_PATTERN}
_REVISION = {"type": "integer", "minimum": 0}

_VIEW = {
    "type": "object",
    "description": "What the TUI shows. Missing when the status is rejected.",
    "properties": {
        "instanceId": {**_UUID, "description": "Which run of the TUI this is."},
        "generation": {**_UUID, "description": "Which share of that run this is."},
        "revision": {**_REVISION, "description": "Grows with every change of the view and every input of the user."},
        "route": {"type": "string", "enum": list(wire.ROUTES), "description": "home: no session is shown."},
        "sessionId": {**_SESSION_ID, "description": "The session that is shown, on the route session."},
        "ready": {"type": "boolean", "description": "Whether the TUI can be navigated at all."},
        "blocked": {"type": "boolean", "description": "Whether the user is in the middle of something, or just was."},
    },
    "required": ["instanceId", "generation", "revision", "route", "ready", "blocked"],
    "additionalProperties": False,
}


def _output_schema(done: str) -> dict:
    return {
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": [done, wire.REJECTED]},
            "context": _VIEW,
            "code": {"type": "string", "enum": list(wire.CODES), "description": "Why it was rejected."},
        },
        "required": ["status"],
        "additionalProperties": False,
    }


TOOLS = [
    {
        "name": wire.GET_VIEW_CONTEXT,
        "title": "Get the shared TUI's view",
        "description": (
            "Read what the user's live TUI shows now: the route, the session's id, whether it is ready, whether the "
            "user is busy in it, and the revision that select_session has to be given. Changes nothing. It never "
            "tells transcripts, drafts, titles, paths or credentials."
        ),
        "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
        "outputSchema": _output_schema(wire.CONTEXT),
        "annotations": {
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
    {
        "name": wire.SELECT_SESSION,
        "title": "Show a session in the shared TUI",
        "description": (
            "Switch the user's live TUI to a session, for the user to look at. First read a fresh context with "
            "get_view_context and pass on its instanceId, generation and revision (as expectedRevision, a whole "
            "number of at least 0) with a new uuid as requestId; sessionId has the form ses_... and comes from the "
            "user. Success acknowledges the route, not that it is drawn. Idempotent by requestId: the same request "
            "again gets the first answer and does nothing. On timeout_unknown or outcome_unknown it may have "
            "happened: read the context again, and do not retry with a new requestId. Every key that the user presses "
            "there, one that approves a call of yours too, makes the revision stale and is followed by a pause: on "
            "stale_revision wait three seconds, read the context again and select at once; on user_active the user is "
            "in the middle of something (typing, a line that is not sent, something open), leave them alone for a "
            "while. A user who approves each call with a key in this same TUI has to allow both tools beforehand."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "requestId": {**_UUID, "description": "A uuid of your own, new for each thing that you want done."},
                "instanceId": {**_UUID, "description": "From the context, a uuid."},
                "generation": {**_UUID, "description": "From the context, a uuid."},
                "expectedRevision": {**_REVISION, "description": "The context's revision, a whole number from 0."},
                "sessionId": {**_SESSION_ID, "description": "The session to show: ses_ and then letters or digits."},
            },
            "required": ["requestId", "instanceId", "generation", "expectedRevision", "sessionId"],
            "additionalProperties": False,
        },
        "outputSchema": _output_schema(wire.APPLIED),
        "annotations": {
            "readOnlyHint": False,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    },
]

INSTRUCTIONS = (
    "One live TUI of the user, shared on purpose and revocable at any moment. Read get_view_context first; call "
    "select_session only when the user wants to be shown a session."
)

# Unknown tools and arguments of any shape get an answer of our own form. Calls run side by side: a read answers
# during a select, and a second select hears `busy` from the TUI.
OPTIONS = Options(max_line_bytes=64 << 10, max_running=16, any_tool_name=True, any_arguments=True)


class TuiProvider(Provider):
    """The tools, for the one endpoint that was named at start; to be served with OPTIONS.

    Raises EndpointError when that cannot be used, unless with `later` there is nothing yet; calls check it anew.
    """

    name = "termsprawl-tui"

    def __init__(self, path: str, *, later: bool = False) -> None:
        if later:
            endpoint.require_posix()
            endpoint.check_form(path)
        if not later or os.path.lexists(path):
            endpoint.load(path)
        self._path = path

    def instructions(self) -> str:
        return INSTRUCTIONS

    def tools(self) -> list[dict]:
        return TOOLS

    def call(self, name: str, arguments: dict, context: Context) -> dict:
        try:
            request = _request(name, arguments)
        except wire.InvalidFrame as error:
            log(f"{name[:40]!a}: {error}")
            return result(wire.rejected(wire.INVALID_REQUEST))
        return result(client.call(self._path, request, context))


def _request(name: str, arguments: object) -> wire.GetViewContext | wire.SelectSession:
    if name == wire.SELECT_SESSION:
        return wire.select_request(arguments)
    if name != wire.GET_VIEW_CONTEXT:
        raise wire.InvalidFrame(f"there is no tool {name[:40]!a}")
    if arguments not in ({}, None):
        raise wire.InvalidFrame("get_view_context takes no arguments")
    return wire.GetViewContext()


def result(answer: dict) -> dict:
    """A tool's result for an answer: the same JSON as structure and as the one text."""
    return {
        "content": [{"type": "text", "text": jsontext.compact(answer)}],
        "structuredContent": answer,
        "isError": answer["status"] == wire.REJECTED,
    }
