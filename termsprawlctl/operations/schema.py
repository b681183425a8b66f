"""THE table of operations as everything else uses it: lookup, schemas, validation.

One table feeds the CLI's help, MCP's tools/list and the embedded host's validation.
"""

from __future__ import annotations

from .extension_table import EXTENSION_ROWS
from .table import ROWS, Argument, Operation

MAX_STRING_CHARS = 64_000
MAX_NUMBER = 1_000_000
MAX_ITEMS = 100
MAX_ITEM_CHARS = 255


class InvalidCall(ValueError):
    """A request that the table does not allow; the text is the contract's, for example `Invalid x`."""


# name -> Operation, in the order in which they are listed everywhere.
OPERATIONS = {operation.name: operation for operation in ROWS}
# Operations that only the embedded host may offer; listed to an MCP client only when
# the running host's session_info names them.
EXTENSIONS: dict[str, Operation] = {operation.name: operation for operation in EXTENSION_ROWS}


def input_schema(operation: Operation) -> dict:
    """The JSON Schema of an operation's arguments: an object, closed, one type each."""
    properties: dict[str, dict] = {}
    for argument in operation.arguments:
        properties[argument.name] = _property(argument)
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [argument.name for argument in operation.arguments if argument.required]
    if required:
        schema["required"] = required
    return schema


def mcp_tool(operation: Operation) -> dict:
    """The operation as an entry of MCP's tools/list, all four hints explicit."""
    return {
        "name": operation.name,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": input_schema(operation),
        "annotations": {
            "title": operation.title,
            "readOnlyHint": operation.read_only,
            "destructiveHint": operation.destructive,
            "idempotentHint": operation.idempotent,
            "openWorldHint": operation.open_world,
        },
    }


def validate(name: object, args: object, known=None) -> Operation:
    """The operation of a request, once its arguments are checked against the table.

    `known` maps names to the operations that are offered, the whole table when it is
    None. Raises InvalidCall with the contract's text.
    """
    operation = (OPERATIONS if known is None else known).get(name) if isinstance(name, str) else None
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


def _property(argument: Argument) -> dict:
    if argument.kind in ("number", "boolean"):
        return {"type": argument.kind, "description": argument.description}
    if argument.kind == "strings":
        item = {"type": "string", "maxLength": MAX_ITEM_CHARS}
        return {
            "type": "array",
            "items": item,
            "minItems": 1,
            "maxItems": MAX_ITEMS,
            "description": argument.description,
        }
    schema = {"type": "string", "description": argument.description}
    if argument.choices:
        schema["enum"] = list(argument.choices)
    return schema


def _valid(argument: Argument, value: object) -> bool:
    if argument.kind == "number":
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return is_number and abs(value) <= MAX_NUMBER  # false for NaN and infinity, too
    if argument.kind == "boolean":
        return isinstance(value, bool)
    if argument.kind == "strings":
        return isinstance(value, list) and 1 <= len(value) <= MAX_ITEMS and all(map(_valid_item, value))
    if not isinstance(value, str) or len(value) > MAX_STRING_CHARS or "\0" in value:
        return False
    return not argument.choices or value in argument.choices


def _valid_item(value: object) -> bool:
    return isinstance(value, str) and len(value) <= MAX_ITEM_CHARS and "\0" not in value
