"""OpenAI Chat Completions, as opencode speaks it."""

from __future__ import annotations

import json

from .conversation import Reply, Said, parameters, pieces
from .responses import error

__all__ = ["PATH", "assembled", "error", "events", "offered", "said", "streamed"]

PATH = r"/chat/completions$"


def offered(body: dict) -> dict[str, list[str]]:
    functions = [tool.get("function", {}) for tool in body.get("tools") or []]
    return {function["name"]: parameters(function) for function in functions if function.get("name")}


def said(body: dict) -> list[Said]:
    found = []
    for message in body.get("messages", []):
        role = message.get("role")
        if role == "assistant":
            if message.get("content"):
                found.append(Said("text"))
            found += [Said("call", call.get("id")) for call in message.get("tool_calls") or []]
        elif role in ("user", "tool"):
            found.append(Said("user" if role == "user" else "result"))
    return found


def streamed(body: dict, path: str) -> bool:
    return bool(body.get("stream"))


def events(reply: Reply):
    base = {"id": f"chatcmpl-{reply.number}", "object": "chat.completion.chunk", "created": 0, "model": reply.model}

    def chunk(delta: dict, finish: str | None = None):
        return None, {**base, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(reply.reasoning):
        yield chunk({"reasoning_content": piece})
    for piece in pieces(reply.text):
        yield chunk({"content": piece})
    for index, (its_id, name, arguments) in enumerate(reply.calls):
        function = {"name": name, "arguments": ""}
        yield chunk({"tool_calls": [{"index": index, "id": its_id, "type": "function", "function": function}]})
        for piece in pieces(json.dumps(arguments)):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    if reply.failure:
        yield None, {"error": {"message": reply.failure, "type": "server_error"}}
        return
    yield chunk({}, "tool_calls" if reply.calls else "stop")
    usage = {
        "prompt_tokens": reply.usage["input"],
        "completion_tokens": reply.usage["output"],
        "total_tokens": reply.usage["input"] + reply.usage["output"],
        "prompt_tokens_details": {"cached_tokens": reply.usage["cached"]},
        "completion_tokens_details": {"reasoning_tokens": reply.usage["reasoning"]},
    }
    yield None, {**base, "choices": [], "usage": usage}
    yield None, "[DONE]"


def assembled(_events: list) -> dict | None:
    """Opencode only ever streams."""
    return None
