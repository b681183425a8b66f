"""What each operation answers: the shape of the `value` of its result.

Read by `tools`, the reference and tests, never on the way to an answer. A shape is the name of a JSON type
("any": each of them), an object with the shape of each key, or a list with the shape of its items.
A key that ends in ? may be missing; with the key * an object may have others, too.
What only the embedded host adds may be missing: the app does not know it.
"""

from __future__ import annotations

from typing import Any, Union

Shape = Union[str, dict[str, Any], list[Any]]

_NODE = {"nodeId": "string"}
_DELIVERED = {**_NODE, "delivered": "boolean"}
_POINT = {"x": "number", "y": "number"}
_SIZE = {"width": "number", "height": "number"}
_STATUS = dict.fromkeys(("state", "adapter", "version", "reason"), "string")
_TASK = {
    **dict.fromkeys(("id", "projectId", "sourceNodeId", "targetNodeId", "text", "state"), "string"),
    "createdAt": "number",
    "updatedAt": "number",
    "response?": "string",
    "messageId?": "string",
}
_PLACE_IF_ALIVE = {"cursor?": "string", "ended?": "boolean"}

# Of the browser's operations, which only the app has, one alone is known.
RESULTS: dict[str, Shape] = {
    "session_info": {
        **dict.fromkeys(("nodeId", "projectId", "instanceId", "host", "appVersion"), "string"),
        "status": _STATUS,
        "projectFolder?": "string",
        "preferencesFile": "string",
        "guidesDirectory": "string",
        "browserEnabled": "boolean",
        "operations": ["string"],
    },
    "guide_read": "string",
    "canvas_list": [
        {
            "id": "string",
            "type": "string",
            "position": _POINT,
            "parentId?": "string",
            "width?": "number",
            "height?": "number",
            "style?": "object",
            "data?": "object",
            "elsewhere?": "boolean",
            "ended?": "boolean",
            "*": "any",
        }
    ],
    "canvas_select": {"nodeIds": ["string"]},
    "canvas_move": {**_NODE, "position?": _POINT},
    "canvas_resize": {**_NODE, "style?": _SIZE},
    "canvas_group": {**_NODE, "nodeIds": ["string"], "position?": _POINT, "style?": _SIZE},
    "sticky_open": _NODE,
    "browser_open": _NODE,
    "terminal_open": _NODE,
    "terminal_read": {**_NODE, "output": "string"},
    "terminal_submit": {**_DELIVERED, "foreground?": "string"},
    "terminal_input": _DELIVERED,
    "terminal_interrupt": _DELIVERED,
    "terminal_external": {**_NODE, "attached": "boolean", "confirmed?": "boolean"},
    "terminal_close": {**_NODE, "closed?": "boolean"},
    "agent_launch": _NODE,
    "agent_status": [{**_NODE, "projectId": "string", "status": _STATUS, "running?": "boolean"}],
    "agent_cards": [
        {
            **dict.fromkeys(("nodeId", "projectId", "name", "preset", "command", "transport"), "string"),
            "integration": _STATUS,
            "capabilities": ["string"],
            "enabledPeerIds": ["string"],
            "running?": "boolean",
        }
    ],
    "agent_send": _TASK,
    "agent_task": _TASK,
    "agent_reply": _TASK,
    "context_read": {"text": "string", "reader": "string", "reason?": "string"},
    "artifact_open": {**_NODE, "path?": "string"},
    "terminal_run": {
        **_NODE,
        "output": "string",
        "exitStatus": "number | null",
        "durationMs": "number",
        "timedOut": "boolean",
        "truncated": "boolean",
        "outputBytes?": "number",
        "fullScreen?": "boolean",
        "screen?": "string",
        "note?": "string",
        **_PLACE_IF_ALIVE,
    },
    "terminal_wait": {
        **_NODE,
        "reason": "string",
        "match?": "string",
        "exitStatus?": "number | null",
        "tail": "string",
        "note?": "string",
        **_PLACE_IF_ALIVE,
    },
    "terminal_since": {
        **_NODE,
        "output": "string",
        "missed": "boolean",
        "more": "boolean",
        "fullScreen": "boolean",
        "cursor": "string",
        "ended?": "boolean",
        "exitStatus?": "number | null",
    },
    "terminal_send": {**_DELIVERED, "requestId": "string", "cursor": "string"},
}


def written(shape: Shape) -> str:
    """A shape in one line."""
    if isinstance(shape, str):
        return shape
    if isinstance(shape, list):
        return f"[{written(shape[0])}]"
    return f"{{{', '.join('...' if key == '*' else f'{key}: {written(one)}' for key, one in shape.items())}}}"
