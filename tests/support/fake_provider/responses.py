"""OpenAI Responses, as codex speaks it."""

from __future__ import annotations

import itertools
import json

from .conversation import FREE_FORM, Reply, Said, parameters, pieces

PATH = r"/responses$"


def offered(body: dict) -> dict[str, list[str]]:
    tools: dict[str, list[str]] = {}
    items = body.get("input")
    for holder in [body, *(items if isinstance(items, list) else [])]:
        _collect(holder.get("tools") or [], tools)
    return tools


def _collect(entries: list, tools: dict) -> None:
    for entry in entries:
        if "tools" in entry:  # a namespace of tools
            _collect(entry["tools"], tools)
        elif entry.get("name"):
            tools[entry["name"]] = [FREE_FORM] if entry.get("type") == "custom" else parameters(entry)


def said(body: dict) -> list[Said]:
    found = []
    items = body.get("input")
    for item in items if isinstance(items, list) else []:
        kind = item.get("type", "message")
        if kind.endswith("_call"):
            found.append(Said("call", item.get("call_id")))
        elif kind.endswith("_call_output"):
            found.append(Said("result"))
        elif kind == "message" and item.get("role") in ("user", "assistant"):
            found.append(Said("user" if item["role"] == "user" else "text"))
    return found


def streamed(body: dict, path: str) -> bool:
    return bool(body.get("stream"))


def events(reply: Reply):
    """(event name, data) pairs."""
    sequence = itertools.count()
    whole = {"id": f"resp_{reply.number}", "object": "response", "model": reply.model, "output": []}

    def event(kind: str, **fields):
        return kind, {"type": kind, "sequence_number": next(sequence), **fields}

    yield event("response.created", response={**whole, "status": "in_progress"})
    for index, (opened, deltas, done) in enumerate(_items(reply)):
        yield event("response.output_item.added", output_index=index, item=opened)
        for kind, fields in deltas:
            yield event(kind, item_id=opened["id"], output_index=index, **fields)
        yield event("response.output_item.done", output_index=index, item=done)
    if reply.failure:
        error = {"code": "server_error", "message": reply.failure}
        yield event("response.failed", response={**whole, "status": "failed", "error": error})
        return
    usage = {
        "input_tokens": reply.usage["input"],
        "input_tokens_details": {"cached_tokens": reply.usage["cached"]},
        "output_tokens": reply.usage["output"],
        "output_tokens_details": {"reasoning_tokens": reply.usage["reasoning"]},
        "total_tokens": reply.usage["input"] + reply.usage["output"],
    }
    yield event("response.completed", response={**whole, "status": "completed", "usage": usage})


def _items(reply: Reply):
    """(item as it opens, its deltas, item as it is done) for all that the model says."""
    if reply.reasoning:
        item = {"type": "reasoning", "id": f"rs_{reply.number}", "summary": []}
        part = {"summary_index": 0}
        kind = "response.reasoning_summary_"
        deltas = [(f"{kind}part.added", {**part, "part": {"type": "summary_text", "text": ""}})]
        deltas += [(f"{kind}text.delta", {**part, "delta": piece}) for piece in pieces(reply.reasoning)]
        deltas.append((f"{kind}text.done", {**part, "text": reply.reasoning}))
        summary = [{"type": "summary_text", "text": reply.reasoning}]
        yield item, deltas, {**item, "summary": summary, "encrypted_content": "AAAA"}
    if reply.text:
        item = {"type": "message", "id": f"msg_{reply.number}", "role": "assistant", "content": []}
        if reply.phase:
            item["phase"] = reply.phase
        kind = "response.output_text.delta"
        deltas = [(kind, {"content_index": 0, "delta": piece}) for piece in pieces(reply.text)]
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        yield {**item, "status": "in_progress"}, deltas, {**item, "status": "completed", "content": content}
    for item in reply.items:
        yield item, [], item
    for its_id, name, arguments in reply.calls:
        item = {"call_id": its_id, "name": name, "status": "completed"}
        if isinstance(name, tuple):
            item.update(namespace=name[0], name=name[1])
        if isinstance(arguments, str):
            item.update(type="custom_tool_call", id=f"ctc_{its_id}", input=arguments)
        else:
            item.update(type="function_call", id=f"fc_{its_id}", arguments=json.dumps(arguments))
        yield item, [], item


def assembled(_events: list) -> dict | None:
    """Codex only ever streams."""
    return None


def error(status: int, message: str) -> dict:
    kind, code = {
        401: ("invalid_request_error", "invalid_api_key"),
        429: ("requests", "rate_limit_exceeded"),
        500: ("server_error", None),
    }.get(status, ("invalid_request_error", None))
    return {"error": {"message": message, "type": kind, "param": None, "code": code}}
