"""The agents of a project to clients of Agent2Agent 0.3: cards, message/send and tasks/get over the same operations.

Each agent is a server of its own below /a2a/agents/ID, behind the caller's token. Pure: `call`
runs one of our operations in the caller's name.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...base import jsontext
from ...base.errors import CtlError
from ...operations.schema import InvalidCall
from ..operations.ordering import ExpiredError

Call = Callable[[str, dict[str, Any]], Any]
_CARD = "/.well-known/agent-card.json"
_PATH = re.compile(r"/a2a/agents/([A-Za-z0-9][A-Za-z0-9_-]{0,127})(/.well-known/agent-card\.json)?")
_INVALID_REQUEST, _NO_METHOD, _INVALID_PARAMS, _FAILED, _NO_TASK = -32600, -32601, -32602, -32000, -32001
_NOT_FOUND = (404, {"ok": False, "error": "Unsupported request"})


@dataclass(frozen=True)
class Asked:
    """What a request's head asks for: an agent's card ("" means the caller's own), or a JSON-RPC call of it."""

    agent: str
    is_card: bool
    base_url: str


def asked(method: str, path: str, port: int) -> Asked | None:
    """What a request asks of this facade; None where it is not for it."""
    base_url = f"http://127.0.0.1:{port}"
    if method == "GET" and path == _CARD:
        return Asked("", is_card=True, base_url=base_url)
    found = _PATH.fullmatch(path)
    if found and method == ("GET" if found[2] else "POST"):
        return Asked(found[1], is_card=bool(found[2]), base_url=base_url)
    return None


def respond(what: Asked, caller: str, body: bytes, call: Call) -> tuple[int, dict[str, Any]]:
    """HTTP status and JSON of the answer."""
    if not what.is_card:
        return 200, _rpc(what, body, call)
    for card in call("agent_cards", {}):
        if card["nodeId"] == (what.agent or caller):
            return 200, _card(card, what.base_url)
    return _NOT_FOUND


def _card(card: dict[str, Any], base_url: str) -> dict[str, Any]:
    about = f"{card['preset']} in a terminal of this canvas; takes one task at a time, as text."
    return {
        "protocolVersion": "0.3.0",
        "name": card["name"],
        "description": about,
        "version": "1.0.0",
        "url": f"{base_url}/a2a/agents/{card['nodeId']}",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": False, "pushNotifications": False},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        "security": [{"bearer": []}],
        "skills": [{"id": "work", "name": "Work", "description": about, "tags": ["agent", card["preset"]]}],
    }


class _Fault(Exception):
    """An error of JSON-RPC."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


def _rpc(what: Asked, body: bytes, call: Call) -> dict[str, Any]:
    number = None
    try:
        request = jsontext.loads(body)
        method = request.get("method") if isinstance(request, dict) and request.get("jsonrpc") == "2.0" else None
        if not isinstance(request, dict) or not isinstance(method, str):
            return _error(None, _INVALID_REQUEST, "Invalid Request")
        number, params = request.get("id"), request.get("params")
        task = _perform(what, method, params if isinstance(params, dict) else {}, call)
    except _Fault as fault:
        return _error(number, fault.code, str(fault))
    except (InvalidCall, CtlError) as error:
        return _error(number, _FAILED, str(error))
    except ExpiredError:
        return _error(number, _FAILED, "Queued operation expired before execution; no change applied")
    except ValueError:
        return _error(None, _INVALID_REQUEST, "Invalid Request")
    return {"jsonrpc": "2.0", "id": number, "result": _task(task)}


def _perform(what: Asked, method: str, params: dict[str, Any], call: Call) -> dict[str, Any]:
    """Our task that a call is about. Raises _Fault, and what `call` raises."""
    if method == "message/send":
        text, message_id = _text_of(params.get("message"))
        sent: dict[str, Any] = call("agent_send", {"nodeId": what.agent, "text": text, "messageId": message_id})
        return sent
    if method != "tasks/get":
        raise _Fault(_NO_METHOD, "Method not found")
    if not isinstance(params.get("id"), str):
        raise _Fault(_INVALID_PARAMS, "Invalid params")
    task: dict[str, Any] = call("agent_task", {"taskId": params["id"]})
    if task["targetNodeId"] != what.agent:
        raise _Fault(_NO_TASK, "Task not found")
    return task


def _text_of(message: object) -> tuple[str, str]:
    """The text and the id of a user's message. Raises _Fault."""
    known = message if isinstance(message, dict) else {}
    parts, message_id = known.get("parts"), known.get("messageId")
    texts = [
        part["text"]
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, dict) and part.get("kind") == "text" and isinstance(part.get("text"), str)
    ]
    is_right = known.get("kind") == "message" and known.get("role") == "user" and not known.get("taskId")
    if not is_right or not texts or len(texts) != len(parts or []) or not isinstance(message_id, str) or not message_id:
        raise _Fault(
            _INVALID_PARAMS, "Invalid params: a new message of the user, with an id and parts that are all text."
        )
    return "\n".join(texts), message_id


def _task(task: dict[str, Any]) -> dict[str, Any]:
    """One of our tasks as A2A has it."""
    identity, response = task["id"], task.get("response", "")
    seconds, ms = divmod(task["updatedAt"], 1000)
    status: dict[str, Any] = {
        "state": task["state"],
        "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{ms:03d}Z",
    }
    about = {"kind": "message", "taskId": identity, "contextId": identity}
    if task["state"] == "failed":
        status["message"] = {
            **about,
            "role": "agent",
            "messageId": f"{identity}-failure",
            "parts": [{"kind": "text", "text": response}],
        }
    asked_for = {
        **about,
        "role": "user",
        "messageId": task["messageId"],
        "parts": [{"kind": "text", "text": task["text"]}],
    }
    found = {"kind": "task", "id": identity, "contextId": identity, "status": status, "history": [asked_for]}
    if task["state"] == "completed":
        found["artifacts"] = [{"artifactId": f"{identity}-answer", "parts": [{"kind": "text", "text": response}]}]
    return found


def _error(number: object, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}
