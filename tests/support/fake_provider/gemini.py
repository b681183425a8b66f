"""The Gemini API, as gemini speaks it."""

from __future__ import annotations

from .conversation import Reply, Said, parameters, pieces

PATH = r"/models/[^/]+:(?:streamG|g)enerateContent$"


def offered(body: dict) -> dict[str, list[str]]:
    found = {}
    for tool in body.get("tools") or []:
        for function in tool.get("functionDeclarations", []):
            found[function["name"]] = parameters(function)
    return found


def said(body: dict) -> list[Said]:
    found = []
    for content in body.get("contents", []):
        for part in content.get("parts", []):
            if "functionCall" in part:
                found.append(Said("call", part["functionCall"].get("id")))
            elif "functionResponse" in part:
                found.append(Said("result"))
            elif part.get("text") and not part.get("thought"):
                found.append(Said("text" if content.get("role") == "model" else "user"))
    return found


def streamed(body: dict, path: str) -> bool:
    return "streamGenerateContent" in path


def events(reply: Reply):
    usage = {
        "promptTokenCount": reply.usage["input"],
        "cachedContentTokenCount": reply.usage["cached"],
        "candidatesTokenCount": reply.usage["output"],
        "thoughtsTokenCount": reply.usage["reasoning"],
        "totalTokenCount": reply.usage["input"] + reply.usage["output"],
    }
    base = {"modelVersion": reply.model, "responseId": f"r{reply.number}", "usageMetadata": usage}

    def chunk(parts: list, **candidate):
        content = {"role": "model", "parts": parts}
        return None, {**base, "candidates": [{"index": 0, "content": content, **candidate}]}

    if reply.reasoning:
        yield chunk([{"text": reply.reasoning, "thought": True}])
    for piece in pieces(reply.text):
        yield chunk([{"text": piece}])
    for its_id, name, arguments in reply.calls:
        yield chunk([{"functionCall": {"id": its_id, "name": name, "args": arguments}}])
    if reply.failure:
        yield None, error(500, reply.failure)
        return
    yield chunk([], finishReason="STOP")


def assembled(all_events: list) -> dict:
    """The same reply unstreamed."""
    parts = [
        part
        for event in all_events
        for candidate in event.get("candidates", [])
        for part in candidate["content"]["parts"]
    ]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    return {**all_events[-1], "candidates": [candidate]}


def error(status: int, message: str) -> dict:
    names = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 404: "NOT_FOUND", 429: "RESOURCE_EXHAUSTED"}
    return {"error": {"code": status, "message": message, "status": names.get(status, "INTERNAL")}}
