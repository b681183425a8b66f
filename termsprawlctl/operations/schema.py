"""JSON Schemas of the table's operations, and validation by it."""

from __future__ import annotations

from .table import OPERATIONS, Argument, Operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_STRING_CHARS = 64_000
MAX_NUMBER = 1_000_000
MAX_ITEMS = 100
MAX_ITEM_CHARS = 255
# What MCP takes an annotation for that is not given (ToolAnnotations in its schema).
HINT_DEFAULTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}


class InvalidCall(ValueError):
    """A request that the table does not allow; the text is the contract's, for example `Invalid x`."""


def input_schema(operation: Operation, *, extended: bool = True) -> dict[str, Any]:
    """The JSON Schema of an operation's arguments: an object, closed, one type each.

    `extended`: with the arguments that only the embedded host knows.
    """
    known = [argument for argument in operation.arguments if extended or not argument.extension]
    properties = {argument.name: _property(argument) for argument in known}
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [argument.name for argument in operation.arguments if argument.required]
    if required:
        schema["required"] = required
    return schema


def mcp_tool(operation: Operation, *, extended: bool = True) -> dict[str, Any]:
    """The operation as an entry of MCP's tools/list; what the protocol takes for granted is left out.

    Models pay for each character of it at every turn.
    """
    arguments = input_schema(operation, extended=extended)
    tool = {"name": operation.name, "description": operation.description, "inputSchema": arguments}
    hints = {
        "readOnlyHint": operation.read_only,
        "destructiveHint": operation.destructive,
        "idempotentHint": operation.idempotent,
        "openWorldHint": operation.open_world,
    }
    if operation.read_only:
        # Of what changes nothing these two say nothing.
        del hints["destructiveHint"], hints["idempotentHint"]
    given = {name: value for name, value in hints.items() if value != HINT_DEFAULTS[name]}
    return {**tool, "annotations": given} if given else tool


def validate(name: object, args: object) -> Operation:
    """The operation of a request, once its arguments are checked against the table.

    Raises InvalidCall with the contract's text.
    """
    operation = OPERATIONS.get(name) if isinstance(name, str) else None
    if operation is None:
        raise InvalidCall("Unknown operation")
    if not isinstance(args, dict):
        raise InvalidCall("Expected args object")
    by_name = {argument.name: argument for argument in operation.arguments}
    for argument in operation.arguments:
        if argument.required and argument.name not in args:
            raise InvalidCall(f"Missing argument: {argument.name}")
    for key in args:
        if key not in by_name:
            raise InvalidCall(f"Unknown argument: {key}")
    for key, value in args.items():
        if not _valid(by_name[key], value):
            raise InvalidCall(f"Invalid {key}")
    return operation


def _property(argument: Argument) -> dict[str, Any]:
    if argument.kind == "strings":
        schema: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
    else:
        schema = {"type": argument.kind}
    if argument.choices:
        schema["enum"] = list(argument.choices)
    if argument.description:
        schema["description"] = argument.description
    return schema


def _valid(argument: Argument, value: object) -> bool:
    if argument.kind == "number":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return abs(value) <= MAX_NUMBER  # false for NaN and infinity, too
    if argument.kind == "boolean":
        return isinstance(value, bool)
    if argument.kind == "strings":
        return isinstance(value, list) and 1 <= len(value) <= MAX_ITEMS and all(map(_valid_item, value))
    if not isinstance(value, str) or len(value) > MAX_STRING_CHARS or "\0" in value:
        return False
    return not argument.choices or value in argument.choices


def _valid_item(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ITEM_CHARS and "\0" not in value
