"""Drive a shared TUI's adapter with the official Python client, one tool call a line.

usage: tui_client.py MODE COMMAND [WORD ...]
MODE: auto, legacy, or a modern revision. Prints a line about the server, then reads lines
{"tool": NAME, "arguments": {...}} and prints one JSON object for each result.
"""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main() -> None:
    mode, command, *words = sys.argv[1:]
    async with Client(StdioServerParameters(command=command, args=words), mode=mode) as client:
        tools = (await client.list_tools()).tools
        print(json.dumps({"tools": [tool.name for tool in tools], "revision": client.protocol_version}), flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            call = json.loads(line)
            result = await client.call_tool(call["tool"], call["arguments"])
            report = {
                "texts": [block.text for block in result.content],
                "structured": result.structured_content,
                "isError": bool(result.is_error),
            }
            print(json.dumps(report), flush=True)


asyncio.run(main())
