"""Give an agent a task and fetch it again, with the official Agent2Agent client (a2a-sdk 0.3).

usage: a2a_client.py URL AGENT
The bearer token is the first line of standard input. Prints the agent's card, the task once it was sent, and, after
each further line, the task as it is then: a line of JSON each. What the server refuses is a line, too: {"error": ...}.
"""

import asyncio
import json
import sys

import httpx
from a2a.client import A2ACardResolver, A2AClientError, ClientConfig, ClientFactory, create_text_message_object
from a2a.types import TaskQueryParams


def show(value: object) -> None:
    print(value if isinstance(value, str) else value.model_dump_json(by_alias=True, exclude_none=True), flush=True)


async def main() -> None:
    url, agent = sys.argv[1:]
    headers = {"authorization": f"Bearer {sys.stdin.readline().strip()}"}
    async with httpx.AsyncClient(headers=headers) as http:
        card = await A2ACardResolver(http, f"{url}/a2a/agents/{agent}").get_agent_card()
        show(card)
        client = ClientFactory(ClientConfig(httpx_client=http, streaming=False)).create(card)
        async for event in client.send_message(create_text_message_object(content="one task, please")):
            task = event[0]
        show(task)
        for line in sys.stdin:
            try:
                show(await client.get_task(TaskQueryParams(id=line.strip() or task.id)))
            except A2AClientError as error:
                show(json.dumps({"error": str(error)}))


asyncio.run(main())
