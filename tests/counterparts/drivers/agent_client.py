"""Call tools of a stdio server one after the other, or at once, with the official Python client.

usage: agent_client.py PLAN.json COMMAND [WORD ...]
PLAN: {"env": {...}, "calls": [[TOOL, ARGUMENTS], ...], "at_once": bool}. Arguments may hold
"{sessionId}", which becomes the session of the call before. With "mode" (auto, legacy, or a modern
revision) and "choose" it answers the server's questions with that choice, "" to decline. Prints a JSON
list: for each call its result, its progress messages, how far their counter rose, and what it was asked.
"""

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.types import ElicitResult


async def call(client, tool, arguments, asked):
    progress = []

    async def heard(counter, total, message):
        progress.append([counter, total, message])

    result = await client.call_tool(tool, arguments, progress_callback=heard)
    return {
        "isError": bool(result.is_error),
        "text": "".join(block.text for block in result.content),
        "structured": result.structured_content,
        "progress": progress,
        "asked": asked,
    }


async def main() -> None:
    plan_file, command, *words = sys.argv[1:]
    plan = json.loads(Path(plan_file).read_text())
    done, asked, options = [], [], {}

    async def choose(_context, params):
        asked.append(params.message)
        if not plan["choose"]:
            return ElicitResult(action="decline")
        return ElicitResult(action="accept", content={"decision": plan["choose"]})

    if "choose" in plan:
        options = {"mode": plan["mode"], "elicitation_callback": choose}
    async with Client(StdioServerParameters(command=command, args=words, env=plan["env"]), **options) as client:
        await client.list_tools()
        if plan.get("at_once"):
            done = await asyncio.gather(*(call(client, tool, given, asked) for tool, given in plan["calls"]))
        else:
            for tool, arguments in plan["calls"]:
                if arguments.get("sessionId") == "{sessionId}":
                    arguments["sessionId"] = done[-1]["structured"]["sessionId"]
                done.append(await call(client, tool, arguments, asked))
    print(json.dumps(done))


asyncio.run(main())
