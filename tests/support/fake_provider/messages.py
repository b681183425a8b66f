"""Anthropic Messages, as claude speaks it."""

from __future__ import annotations

import json

from .conversation import Reply, Said, parameters, pieces

PATH = r"/messages$"


def offered(body: dict) -> dict[str, list[str]]:
    return {tool["name"]: parameters(tool) for tool in body.get("tools") or [] if tool.get("name")}


def said(body: dict) -> list[Said]:
    found = []
    for message in body.get("messages", []):
        blocks = message.get("content")
        for block in [{"type": "text"}] if isinstance(blocks, str) else blocks:
            kind = block.get("type")
            if kind == "tool_use":
                found.append(Said("call", block.get("id")))
            elif kind == "tool_result":
                found.append(Said("result"))
            elif kind == "text":
                found.append(Said("text" if message["role"] == "assistant" else "user"))
    return found


def streamed(body: dict, path: str) -> bool:
    return bool(body.get("stream"))


def events(reply: Reply):
    def event(kind: str, **fields):
        return kind, {"type": kind, **fields}

    usage = {
        "input_tokens": reply.usage["input"],
        "output_tokens": 1,
        "cache_read_input_tokens": reply.usage["cached"],
        "cache_creation_input_tokens": 0,
    }
    message = {"id": f"msg_{reply.number}", "type": "message", "role": "assistant", "model": reply.model, "content": []}
    yield event("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})
    for index, (block, deltas) in enumerate(_blocks(reply)):
        yield event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield event("content_block_delta", index=index, delta=delta)
        yield event("content_block_stop", index=index)
    if reply.failure:
        yield event("error", error={"type": "api_error", "message": reply.failure})
        return
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    yield event("message_delta", delta=stop, usage={"output_tokens": reply.usage["output"]})
    yield event("message_stop")


def _blocks(reply: Reply):
    """(block as it opens, its deltas)."""
    if reply.reasoning:
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.reasoning)]
        yield (
            {"type": "thinking", "thinking": "", "signature": ""},
            [
                *deltas,
                {"type": "signature_delta", "signature": "AAAA"},
            ],
        )
    if reply.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(reply.text)]
    for its_id, name, arguments in reply.calls:
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(json.dumps(arguments))]
        yield {"type": "tool_use", "id": f"toolu_{its_id}", "name": name, "input": {}}, deltas


def assembled(all_events: list) -> dict:
    """The same reply unstreamed: what claude asks for when a stream broke."""
    message: dict = {}
    blocks: dict[int, dict] = {}
    for event in all_events:
        if event["type"] == "message_start":
            message = dict(event["message"])
        elif event["type"] == "content_block_start":
            blocks[event["index"]] = dict(event["content_block"])
        elif event["type"] == "content_block_delta":
            block = blocks[event["index"]]
            for key, piece in event["delta"].items():
                if key != "type":
                    block[key] = block.get(key, "") + piece
        elif event["type"] == "message_delta":
            message.update(event["delta"], usage={**message["usage"], **event["usage"]})
    for block in blocks.values():
        if "partial_json" in block:
            block["input"] = json.loads(block.pop("partial_json"))
    return {**message, "content": [blocks[index] for index in sorted(blocks)]}


def error(status: int, message: str) -> dict:
    kinds = {400: "invalid_request_error", 401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}}
