"""`call`: one operation with arguments from wherever it is handiest."""

from __future__ import annotations

from ...base import console
from ..fields import read_arguments
from ..results import deliver, require_session

EPILOG = """\
examples:
  termsprawlctl call canvas_list
  termsprawlctl call terminal_read '{"nodeId": "n-1", "maxChars": 2000}'
  termsprawlctl call canvas_move nodeId=n-1 x=20 y=40
  termsprawlctl call canvas_select nodeIds=n-1,n-2
  termsprawlctl call sticky_open @note.json
  printf '{"text": "hello"}' | termsprawlctl call sticky_open -
  termsprawlctl call terminal_open --field value.nodeId
  termsprawlctl call browser_screenshot nodeId=b-1 --save shot.png

`termsprawlctl tools` lists the operations, `termsprawlctl tools OPERATION` its arguments.
"""


def configure(parser) -> None:
    parser.usage = "termsprawlctl call OPERATION [JSON_ARGS | - | @FILE | NAME=TEXT NAME:=JSON ...]"
    parser.epilog = EPILOG
    parser.add_argument("operation", nargs="?", metavar="OPERATION", help="name of the operation; the app checks it")
    parser.add_argument(
        "arguments",
        nargs="*",
        metavar="ARGS",
        help="a JSON object; - reads it from standard input, @FILE from a file; or fields: "
        "NAME=TEXT is read as the argument's type (lists with commas), NAME:=JSON is any value",
    )
    parser.add_argument("--field", metavar="PATH", help="print only this value, raw, for example value.output")
    parser.add_argument(
        "--save", metavar="FILE", help="write the picture in value.image to FILE and leave it out of the output"
    )


def plain(words: list[str]) -> dict[str, object] | None:
    if any(word.startswith("-") and word != "-" for word in words):
        return None
    return {"operation": words[0] if words else None, "arguments": words[1:], "field": None, "save": None}


def run(args) -> int:
    from ...app.transport import call

    session = require_session(args.session)
    arguments = read_arguments(args.arguments, args.operation)
    delivery = deliver(args.field, args.save)
    result = call(session, args.operation, arguments)
    status = delivery(result)
    if not result["ok"]:
        _hint(args.operation, str(result["error"]))
    return status


def _hint(operation: str | None, error: str) -> None:
    from ..hints import hint

    text = hint(operation, error)
    if text:
        console.err(f"termsprawlctl: {text}")
