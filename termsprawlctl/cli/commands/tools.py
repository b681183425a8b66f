"""`tools`: the operation table, without any session or server."""

from __future__ import annotations

from ...base import console, jsontext
from ...base.errors import OK, UsageError
from ...operations.schema import mcp_tool
from ...operations.table import OPERATIONS, Operation

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
    if args.operation is None:
        text = jsontext.pretty([mcp_tool(one) for one in OPERATIONS.values()]) if args.json else _overview()
    elif args.operation in OPERATIONS:
        one = OPERATIONS[args.operation]
        text = jsontext.pretty(mcp_tool(one)) if args.json else _details(one)
    else:
        from ..hints import suggestion

        near = suggestion(args.operation, OPERATIONS)
        raise UsageError(f"there is no operation {args.operation!r}.", f"{near} See termsprawlctl tools.".strip())
    console.out(text + "\n")
    return OK


def signature(operation: Operation) -> str:
    """`name required [optional]`, the short form."""
    words = [one.name if one.required else f"[{one.name}]" for one in operation.arguments]
    return " ".join([operation.name, *words])


def _overview() -> str:
    import textwrap

    forms = {name: signature(one) for name, one in OPERATIONS.items()}
    width = max(map(len, forms.values()))
    lines = []
    for name, one in OPERATIONS.items():
        first_sentence = one.description.split(". ")[0].rstrip(".") + "."
        lines.append(f"{forms[name]:<{width}}  {textwrap.shorten(first_sentence, WIDTH, placeholder=' …')}")
    return "\n".join(lines)


def _details(operation: Operation) -> str:
    import textwrap

    from ...operations.results import RESULTS, written

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
        about = f" {argument.description}." if argument.description else ""
        choices = f" One of: {', '.join(argument.choices)}." if argument.choices else ""
        lines.append(f"  {argument.name:<{width}}  {kind}, {need}.{about}{choices}")
    if operation.arguments:
        lines.append("")
    if operation.name in RESULTS:
        returns = f"returns: {written(RESULTS[operation.name])}"
        lines += textwrap.wrap(returns, WIDTH, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
    lines.append("hints: " + (", ".join(name for name, given in hints.items() if given) or "none"))
    return "\n".join(lines)
