"""A server on the official Python SDK that lists the tools in a JSON file: what ours is measured against.

usage: python_server.py TOOLS.json
"""

import asyncio
import json
import sys
from pathlib import Path

import mcp.server.stdio
import mcp_types as types
from mcp.server.lowlevel import Server

TOOLS = [types.Tool.model_validate(tool) for tool in json.loads(Path(sys.argv[1]).read_text())]


async def list_tools(_context, _params):
    return types.ListToolsResult(tools=TOOLS)


async def main() -> None:
    server = Server("measured", on_list_tools=list_tools)
    async with mcp.server.stdio.stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


asyncio.run(main())
