"""Answers held against their declarations in termsprawlctl/operations/results.py."""

from __future__ import annotations

from termsprawlctl.operations.results import Shape, written


def differs(value: object, shape: Shape, where: str = "value") -> list[str]:
    """How a JSON value differs from a shape, a line each; [] where it does not."""
    if isinstance(shape, list) and isinstance(value, list):
        return [line for item in value for line in differs(item, shape[0], f"{where}[]")]
    if isinstance(shape, dict) and isinstance(value, dict):
        known = {key.rstrip("?"): one for key, one in shape.items()}
        missing = [f"{where}.{key} is missing" for key in shape if key not in value and key[-1] not in "?*"]
        found = [f"{where}.{key} is not declared" for key in value if key not in known and "*" not in shape]
        return [
            *missing,
            *found,
            *(line for key in value if key in known for line in differs(value[key], known[key], f"{where}.{key}")),
        ]
    kinds = shape.split(" | ") if isinstance(shape, str) else []
    return [] if "any" in kinds or _kind(value) in kinds else [f"{where} is {_kind(value)}, not {written(shape)}"]


def _kind(value: object) -> str:
    """The name of a value's type in JSON."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "boolean"
    kinds = {str: "string", int: "number", float: "number", list: "array", dict: "object"}
    return kinds[type(value)]
