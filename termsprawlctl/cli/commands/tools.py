"""`tools`: the operation table, without any session or server."""

from __future__ import annotations

from ...base import console, jsontext
from ...base.errors import OK, UsageError
from ...operations.schema import EXTENSIONS, OPERATIONS, mcp_tool

EPILOG = """\
examples:
  termsprawlctl tools
  termsprawlctl tools terminal_read
  termsprawlctl tools --json
"""
WIDTH = 96


def configure(parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("operation", nargs="?", metavar="OPERATION", help="show one operation with its arguments")
    parser.add_argument("--json", action="store_true", help="print JSON: names, descriptions, schemas and hints")


def run(args) -> int:
    table = {**OPERATIONS, **EXTENSIONS}
    if args.operation is None:
        text = jsontext.pretty([mcp_tool(one) for one in table.values()]) if args.json else _overview(table)
    elif args.operation in table:
        one = table[args.operation]
        text = jsontext.pretty(mcp_tool(one)) if args.json else _details(one)
    else:
        from ..suggest import suggestion

        near = suggestion(args.operation, table)
        raise UsageError(f"there is no operation {args.operation!r}.", f"{near} See termsprawlctl tools.".strip())
    console.out(text + "\n")
    return OK


def signature(operation) -> str:
    """`name required [optional]`, the short form."""
    words = [name if required else f"[{name}]" for name, _, required, _, _ in operation.arguments]
    return " ".join([operation.name, *words])


def _overview(table: dict) -> str:
    import textwrap

    forms = {name: signature(one) for name, one in table.items()}
    width = max(map(len, forms.values()))
    lines = []
    for name, one in table.items():
        first_sentence = one.description.split(". ")[0].rstrip(".") + "."
        lines.append(f"{forms[name]:<{width}}  {textwrap.shorten(first_sentence, WIDTH, placeholder=' …')}")
    return "\n".join(lines)


def _details(operation) -> str:
    import textwrap

    hints = {
        "read-only": operation.read_only,
        "destructive": operation.destructive,
        "idempotent": operation.idempotent,
        "open world": operation.open_world,
    }
    lines = [signature(operation), "", *textwrap.wrap(operation.description, WIDTH), ""]
    width = max((len(argument.name) for argument in operation.arguments), default=0)
    for argument in operation.arguments:
        kind = {"strings": "array of strings"}.get(argument.kind, argument.kind)
        need = "required" if argument.required else "optional"
        choices = f" One of: {', '.join(argument.choices)}." if argument.choices else ""
        lines.append(f"  {argument.name:<{width}}  {kind}, {need}. {argument.description}.{choices}")
    if operation.arguments:
        lines.append("")
    lines.append("hints: " + (", ".join(name for name, given in hints.items() if given) or "none"))
    return "\n".join(lines)
