"""An agent of a few lines that speaks ACP, and a server that runs it."""

from __future__ import annotations

import contextlib

AGENT = """
import itertools
lines = iter(sys.stdin.readline, "")
number = itertools.count()

def answer(message, **result):
    say({"jsonrpc": "2.0", "id": message["id"], "result": result})

def fail(message, code, text, **more):
    say({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text, **more}})

def update(_name, **fields):
    say({"jsonrpc": "2.0", "method": "session/update",
         "params": {"sessionId": "s-1", "update": {"sessionUpdate": _name, **fields}}})

def chunk(words):
    update("agent_message_chunk", content={"type": "text", "text": words})

def ask(method, **params):
    key = "q%d" % next(number)
    say({"jsonrpc": "2.0", "id": key, "method": method, "params": {"sessionId": "s-1", **params}})
    message = take()
    assert message["id"] == key, message
    return message

def take(method=None):
    message = json.loads(next(lines))
    record("last", message)
    assert method is None or message.get("method") == method, message
    return message

OPTIONS = [{"optionId": "always", "name": "Always", "kind": "allow_always"},
           {"optionId": "once", "name": "Once", "kind": "allow_once"},
           {"optionId": "no", "name": "No", "kind": "reject_once"}]

def open_session(**more):
    answer(take("initialize"), protocolVersion=1, agentCapabilities={"loadSession": True})
    message = take("session/new")
    record("new", message["params"])
    answer(message, sessionId="s-1", **more)

def task():
    return take("session/prompt")
"""


def script(box, body, name="my-agent"):
    box.script(AGENT + body, name)


@contextlib.contextmanager
def acp(box, *words, command=("my-agent",)):
    with box.server(*words, "--", *command, agent="acp") as server:
        yield lambda **call: server.answer_to(server.call("run", **{"prompt": "go", **call}))


WORK = """
open_session()
message = task()
record("prompt", message["params"]["prompt"])
print("a banner that is no message", flush=True)
say({"jsonrpc": "2.0", "method": "_vendor/thing", "params": {}})
refused = ask("fs/read_text_file", path="/etc/passwd")
record("refused", refused)
update("tool_call", toolCallId="t", title="run", kind="execute", status="pending", rawInput={"command": "make"})
outcome = ask("session/request_permission", toolCall={"toolCallId": "t", "kind": "execute"}, options=OPTIONS)
record("outcome", outcome["result"])
update("tool_call_update", toolCallId="t", status="completed", rawOutput={"exit_code": 0, "output": "built"})
update("made_up_kind", anything=1)
chunk("All ")
chunk("done.")
answer(message, stopReason="end_turn", usage={"inputTokens": 3, "outputTokens": 4})
record("eof", next(lines, None))
"""
