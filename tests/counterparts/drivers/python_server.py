"""A bridge on the official Python SDK, as one would write it: what ours is measured against.

usage: python_server.py TOOLS.json SESSION_FILE

Lists the tools in a JSON file and passes each call on to the app that the session file leads to.
"""

import asyncio
import json
import sys
from pathlib import Path

import httpx2
import mcp.server.stdio
import mcp_types as types
from mcp.server.lowlevel import Server

TOOLS = [types.Tool.model_validate(tool) for tool in json.loads(Path(sys.argv[1]).read_text())]
SESSION = Path(sys.argv[2])


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=TOOLS)


async def main() -> None:
    # A connection for each call, as the app closes it after the answer.
    async with httpx2.AsyncClient(trust_env=False, limits=httpx2.Limits(max_keepalive_connections=0)) as client:

        async def call_tool(_context, params):
            token = json.loads(SESSION.read_text())["token"]
            url = json.loads((SESSION.parent.parent / "endpoint.json").read_text())["url"]
            body = {"operation": params.name, "args": params.arguments or {}}
            answer = await client.post(url, json=body, headers={"authorization": f"Bearer {token}"})
            result = answer.json()
            text = json.dumps(result, ensure_ascii=False)
            return types.CallToolResult(content=[types.TextContent(text=text)], is_error=not result["ok"])

        server = Server("measured", on_list_tools=list_tools, on_call_tool=call_tool)
        async with mcp.server.stdio.stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
