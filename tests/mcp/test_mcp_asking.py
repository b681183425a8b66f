"""Questions to the person in front of the client, in each revision, and clients that cannot or do not answer."""

from __future__ import annotations

import json

import pytest
from support.mcp_client import META, PREFIX, McpServer, toy
from support.waiting import until

LEGACY = ["2025-06-18", "2025-11-25"]
ABLE = {"elicitation": {}}
MODERN_META = {**META, f"{PREFIX}clientCapabilities": ABLE}


@pytest.fixture
def server(ctl, hermetic_env):
    with McpServer(toy(ctl, "max_running=4"), hermetic_env) as running:
        yield running


def text(answer: dict) -> str:
    return answer["result"]["content"][0]["text"]


def ask_legacy(server, version="2025-11-25", capabilities=ABLE, **arguments):
    """(id of the call, the question that came)."""
    server.initialize(version, capabilities)
    key = server.call("ask", **arguments)
    return key, server.read()


def ask_modern(server, meta=MODERN_META, **more):
    params = {"name": "ask", "arguments": {}, "_meta": meta, **more}
    return server.request("tools/call", params)


def reply(server, question, result):
    server.send({"jsonrpc": "2.0", "id": question["id"], "result": result})


def accept(value):
    return {"action": "accept", "content": {"decision": value}}


@pytest.mark.parametrize("version", LEGACY)
def test_a_question_is_a_request_to_the_client_while_the_call_is_open(server, version):
    key, question = ask_legacy(server, version)
    assert question["method"] == "elicitation/create"
    params = question["params"]
    assert params["message"] == "May I?"
    schema = params["requestedSchema"]
    assert (schema["type"], schema["required"]) == ("object", ["decision"])
    field = schema["properties"]["decision"]
    if version == "2025-06-18":
        assert "mode" not in params
        assert (field["enum"], field["enumNames"]) == (["allow_once", "reject_once"], ["Yes, once", "No"])
    else:
        assert params["mode"] == "form"
        assert field["oneOf"] == [
            {"const": "allow_once", "title": "Yes, once"},
            {"const": "reject_once", "title": "No"},
        ]
    assert server.is_silent()
    reply(server, question, accept("allow_once"))
    assert json.loads(text(server.answer_to(key))) == {"answer": "allow_once", "alone": False}


@pytest.mark.parametrize(
    "answer",
    [
        {"result": {"action": "decline"}},
        {"result": {"action": "cancel"}},
        {"result": {"action": "accept"}},
        {"result": accept("allow_always")},
        {"result": accept(["allow_once"])},
        {"result": {"action": "Accept", "content": {"decision": "allow_once"}}},
        {"result": {"content": {"decision": "allow_once"}}},
        {"result": [accept("allow_once")]},
        {"result": None},
        {"error": {"code": -32601, "message": "Method not found"}},
    ],
    ids=repr,
)
def test_whatever_is_no_choice_of_what_was_offered_is_no_permission(server, answer):
    key, question = ask_legacy(server)
    server.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    assert json.loads(text(server.answer_to(key)))["answer"] == ""
    responses = {"question": answer.get("result")}
    asked = ask_modern(server)["result"]
    done = ask_modern(server, requestState=asked["requestState"], inputResponses=responses)
    assert json.loads(text(done))["answer"] == ""


@pytest.mark.parametrize(
    ("version", "capabilities"),
    [
        ("2024-11-05", ABLE),
        ("2025-03-26", ABLE),
        ("2025-06-18", {}),
        ("2025-11-25", {"elicitation": {"url": {}}}),
        ("2025-11-25", {"elicitation": None}),
        ("2025-11-25", {"elicitation": True}),
    ],
)
def test_a_client_that_has_no_forms_is_not_asked(server, version, capabilities):
    server.initialize(version, capabilities)
    assert text(server.answer_to(server.call("ask"))) == "nobody to ask"
    assert text(ask_modern(server, {**META, f"{PREFIX}clientCapabilities": {"elicitation": {"url": {}}}})) == (
        "nobody to ask"
    )


def test_an_answer_to_another_question_or_a_second_one_changes_nothing(server):
    key, question = ask_legacy(server)
    for other in ("ask-99", 1, None, [], "question"):
        server.send({"jsonrpc": "2.0", "id": other, "result": accept("allow_once")})
    assert server.is_silent()
    reply(server, question, {"action": "decline"})
    reply(server, question, accept("allow_once"))
    assert json.loads(text(server.answer_to(key)))["answer"] == ""


def test_two_calls_have_their_own_answers(server):
    server.initialize(capabilities=ABLE)
    keys = [server.call("ask"), server.call("ask")]
    first, second = server.read(), server.read()
    reply(server, second, accept("reject_once"))
    reply(server, first, accept("allow_once"))
    answers = {answer["id"]: json.loads(text(answer))["answer"] for answer in (server.read(), server.read())}
    assert sorted(answers) == sorted(keys)
    assert sorted(answers.values()) == ["allow_once", "reject_once"]


def test_a_question_that_is_withdrawn_is_cancelled_at_the_client(server):
    key, question = ask_legacy(server, gate="g")
    opened = server.call("open", gate="g")
    messages = [server.read() for _ in range(3)]
    (withdrawn,) = [one for one in messages if "method" in one]
    assert withdrawn["method"] == "notifications/cancelled"
    assert withdrawn["params"]["requestId"] == question["id"]
    answers = {one["id"]: text(one) for one in messages if "id" in one}
    assert json.loads(answers[key])["answer"] == ""
    assert answers[opened] == "opened"


def test_at_the_end_of_the_input_an_open_question_is_answered_with_nothing(server):
    key, _ = ask_legacy(server)
    server.close()
    assert json.loads(text(server.answer_to(key)))["answer"] == ""
    assert server.exit_status() == 0


# --- 2026-07-28: the call is answered with the question, and made again ------------------------------


def test_a_question_ends_the_call_and_its_repetition_brings_the_answer(server):
    asked = ask_modern(server)["result"]
    assert asked["resultType"] == "input_required"
    assert asked["_meta"][f"{PREFIX}serverInfo"]["name"] == "toy"
    request = asked["inputRequests"]["question"]
    assert request["method"] == "elicitation/create"
    assert request["params"]["mode"] == "form"
    assert request["params"]["requestedSchema"]["properties"]["decision"]["oneOf"][0]["const"] == "allow_once"
    done = ask_modern(server, requestState=asked["requestState"], inputResponses={"question": accept("allow_once")})
    assert done["result"]["resultType"] == "complete"
    assert json.loads(text(done)) == {"answer": "allow_once", "alone": False}


def test_a_state_is_good_once_and_for_its_own_call_alone(server):
    state = ask_modern(server)["result"]["requestState"]
    answers = {"question": accept("allow_once")}
    for wrong in ({"name": "echo"}, {"arguments": {"gate": "x"}}, {"requestState": state[:-1]}, {"requestState": 7}):
        refused = ask_modern(server, **{"requestState": state, "inputResponses": answers, **wrong})
        assert refused["error"]["code"] == -32602
    assert json.loads(text(ask_modern(server, requestState=state, inputResponses=answers)))["answer"] == "allow_once"
    assert ask_modern(server, requestState=state, inputResponses=answers)["error"]["code"] == -32602
    assert len(state) >= 32


def test_a_call_whose_client_has_not_come_back_keeps_its_result(server):
    params = {"name": "ask", "arguments": {"gate": "g"}, "_meta": MODERN_META}
    asked = server.request("tools/call", params)["result"]
    assert text(server.modern("tools/call", name="open", arguments={"gate": "g"})) == "opened"
    until(lambda: "withdrawn" in text(server.modern("tools/call", name="started", arguments={})), "the withdrawal")
    again = {**params, "requestState": asked["requestState"], "inputResponses": {"question": accept("allow_once")}}
    # The question was withdrawn meanwhile: a late yes is none.
    done = json.loads(text(server.request("tools/call", again)))
    assert done["answer"] == ""


def test_a_call_that_waits_for_its_client_is_cancelled_by_the_id_of_its_request(server):
    params = {"name": "ask", "arguments": {}, "_meta": MODERN_META}
    key = server.ask("tools/call", params)
    state = server.answer_to(key)["result"]["requestState"]
    server.cancel(key)
    until(lambda: "cancelled" in text(server.modern("tools/call", name="started", arguments={})), "the end of the call")
    assert server.request("tools/call", {**params, "requestState": state})["error"]["code"] == -32602


@pytest.mark.parametrize("how", ["input", "signal"])
def test_the_server_ends_with_a_call_that_waits_for_its_client(server, how):
    ask_modern(server)
    if how == "input":
        server.close()
    else:
        server.signal()
    assert server.exit_status() == 0


def test_more_calls_than_are_kept_are_not_asked(ctl, hermetic_env):
    with McpServer(toy(ctl, "max_running=100"), hermetic_env) as server:
        answers = [ask_modern(server)["result"] for _ in range(66)]
    kinds = [answer["resultType"] for answer in answers]
    assert kinds == ["input_required"] * 64 + ["complete"] * 2
