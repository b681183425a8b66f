"""List the tools of a stdio server and call one, with the official Python client.

usage: python_client.py MODE TOOL JSON_ARGUMENTS COMMAND [WORD ...]
MODE: auto, legacy, or a modern revision. Prints one JSON object.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, tool, arguments, command, *words = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=words), mode=mode) as client:
        tools = (await client.list_tools()).tools
        result = await client.call_tool(tool, json.loads(arguments))
        report = {
            "tools": [entry.name for entry in tools],
            "content": [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content],
            "isError": bool(result.is_error),
            "server": client.server_info.name if client.server_info else None,
            "revision": client.protocol_version,
        }
    print(json.dumps(report))


asyncio.run(main())
