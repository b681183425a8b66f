"""What an agent server may be asked for, and what its CLI may do for it: each call has one result of the schema."""

from __future__ import annotations

import json
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import corpus, hostile
from support.agent_results import check_ended, check_result
from support.scripted_agent import Box

from termsprawlctl.agents.clis.registry import NAMES
from termsprawlctl.agents.model.arguments import MAX_MODEL, BadArguments, RunCall
from termsprawlctl.agents.model.settings import EFFORTS, RESULT_BYTES, Settings, from_environment
from termsprawlctl.agents.server.folders import Folders
from termsprawlctl.agents.server.provider import AgentProvider
from termsprawlctl.mcp.provider import Context

# Says what the file named by the prompt holds, and ends well.
PLAYER = """
path = sys.stdin.buffer.read().decode()
with open(path, "rb") as file:
    sys.stdout.buffer.write(file.read())
"""
# Says what it was given, and where.
MIRROR = """
import hashlib
begin()
end(json.dumps([hashlib.sha256(sys.stdin.buffer.read()).hexdigest(), os.getcwd(), os.environ["PWD"]]))
"""
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")

long_texts = st.builds(lambda text, times: text * times, hostile.any_text, st.sampled_from([50, 3000]))
texts = hostile.any_text | long_texts
paths = st.sampled_from(["/", "/tmp", "/tmp/", "/dev/null", "/proc/self/fd/0", "~", ".", "", " ", "/tmp\0", "/\ud800"])
folders = paths | texts | texts.map(lambda text: f"/tmp/{text}")
run_arguments = hostile.objects_with(
    prompt=texts | hostile.json_values,
    cwd=folders | hostile.json_values,
    model=texts | hostile.json_values,
    effort=hostile.values_beside(*EFFORTS, " high "),
    sessionId=hostile.values_beside("s-1", "a.b:c", "--last", "s\n"),
    background=hostile.values_beside(False, True),
)
right_names = st.builds(lambda given: {name: given[name] for name in given if name in FIELDS}, run_arguments)
FIELDS = ("prompt", "cwd", "model", "effort", "sessionId", "background")
job_arguments = hostile.objects_with(
    runId=hostile.values_beside("run-0123456789ab", "run-0123456789ab\n", "run-\u0661123456789ab"),
    waitMs=hostile.values_beside(0, 1, -1, True, "5", 50_001),
)


def check_text(result: dict) -> str:
    (block,) = result["content"]
    assert block["type"] == "text"
    assert block["text"]
    assert isinstance(result["isError"], bool)
    block["text"].encode()  # no lone surrogate
    return block["text"]


@given(run_arguments | right_names)
def test_arguments_of_run_are_taken_as_text_that_a_program_can_be_given_or_refused_in_plain_words(arguments):
    try:
        call = RunCall(arguments)
    except BadArguments as error:
        text = str(error)
        assert text.isprintable()
        assert len(text) < 400
        return
    for name in RunCall.__slots__:
        if name != "background":
            getattr(call, name).encode()
    assert call.prompt.strip()
    assert len(call.model) <= MAX_MODEL
    assert "\0" not in call.model
    assert call.effort in ("", *EFFORTS)


@given(folders, folders, folders)
def test_a_run_always_has_a_folder_and_the_log_stays_readable(wanted, session, default):
    warned: list[str] = []
    chosen = Folders(default, warned.append)
    folder, _ = chosen.choose(wanted.encode("utf-8", "replace").decode(), session)
    assert os.path.isabs(folder)
    assert os.path.isdir(folder)
    assert all(line.isprintable() and len(line) < 3500 for line in warned)
    chosen.close()


variables = st.sampled_from(["TIMEOUT_MS", "HEARTBEAT_MS", "STRUCTURED", "TRACE", "MODEL", "CWD", "EFFORT"])
values = texts | st.sampled_from(["0", "1", "-1", "1e3", "\u0661", "9" * 5000, "0x10", " 5 ", "high"])


@given(st.dictionaries(variables.map("AGENT_CLI_MCP_{}".format), values))
def test_variables_of_any_text_make_settings_that_hold(environment):
    warned: list[str] = []
    made = from_environment(environment, warned.append)
    assert 0 < made.timeout_s <= 7 * 24 * 3600
    assert 0 < made.heartbeat_s <= 7 * 24 * 3600
    assert made.effort in ("", *EFFORTS)
    assert all(line.isprintable() and len(line) < 600 for line in warned)  # of 40 characters each an escape of ten


@pytest.fixture(scope="module")
def provider(tmp_path_factory):
    """A server's tools where the CLI is not installed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PATH", str(tmp_path_factory.mktemp("none")))
        made = AgentProvider("codex", Settings())
        yield made
        made.close()


@given(
    st.tuples(st.just("run"), run_arguments | right_names)
    | st.tuples(st.sampled_from(["run_status", "run_result", "run_cancel"]), job_arguments | run_arguments)
)
def test_every_call_has_a_result(provider, call):
    name, arguments = call
    result = provider.call(name, arguments, Context())
    text = check_text(result)
    structure = result.get("structuredContent")
    if structure is None or "runs" in structure:
        assert structure or result["isError"]
    elif structure["status"] in ("queued", "running"):
        done = provider.call("run_result", {"runId": structure["runId"], "waitMs": 20_000}, Context())
        check_text(done)
        assert done["structuredContent"]["error"]["code"] == "not_installed"
    else:
        assert "not installed" in text
        check_result(structure)


# --- the built file and a CLI that prints anything ------------------------------------------


@pytest.fixture
def box(ctl, tmp_path, hermetic_env):
    return Box(ctl, tmp_path, hermetic_env)


def outcomes(server, ids: list) -> tuple[dict, dict]:
    """The result of each call, and the progress that came for each before it."""
    results: dict = {}
    progress: dict = {number: [] for number in ids}
    while len(results) < len(ids):
        message = server.read()
        if "method" in message:
            token = message["params"]["progressToken"]
            assert token not in results, "progress after the response"
            progress[token].append(message["params"])
        else:
            results[message["id"]] = message["result"]
    return results, progress


@pytest.mark.parametrize("agent", NAMES)
def test_a_cli_that_prints_anything_leaves_a_server_that_serves_the_next(box, agent):
    box.script(PLAYER, agent)
    files = [path for path in corpus.entries("agent_streams") if path.name.startswith((agent, "mixed", "lines"))]
    with box.server(agent=agent) as server:
        ids = list(range(100, 100 + len(files)))
        for number, path in zip(ids, files):
            server.call("run", token=number, request_id=number, prompt=str(path), model="m")
        results, progress = outcomes(server, ids)
        for number, path in zip(ids, files):
            result = results[number]
            check_ended(check_text(result), result["structuredContent"], RESULT_BYTES)
            assert result["isError"] == (result["structuredContent"]["status"] != "completed"), path
            counted = [params["progress"] for params in progress[number]]
            assert counted
            assert counted == sorted(set(counted))
            for params in progress[number]:
                assert not CONTROLS.search(params["message"])
        honest = server.answer_to(server.call("run_status"))["result"]
        assert honest["structuredContent"] == {"runs": []}
        assert "Traceback" not in server.log()
    assert box.family() == []


def test_a_prompt_arrives_byte_for_byte_whatever_it_is(box):
    import hashlib

    box.script(MIRROR)
    odd = box.project / "\u00e9 \u6f22 \u2028 'q\" $(id)\n\x1b[31m"
    odd.mkdir()
    prompts = ["".join(hostile.SHARP), "\0", "--help", "'\r\n" * 30_000 + "x"]
    with box.server() as server:
        for prompt in prompts:
            result = server.answer_to(server.call("run", prompt=prompt, cwd=str(odd)))["result"]
            arrived = prompt.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
            answer = json.loads(result["structuredContent"]["answer"])
            assert answer == [hashlib.sha256(arrived).hexdigest(), str(odd), str(odd)]
            assert result["structuredContent"]["cwd"] == str(odd)


def test_eighty_megabytes_of_events_that_are_all_new_leave_the_server_small(box):
    box.script(
        """
sys.stdin.read()
for number in range(200):
    new = str(number) + "x" * 200_000
    say({"type": "text", "part": {"text": new, "messageID": "m"}})
    tool = {"input": {"filePath": new, "command": new[:9]}, "status": "completed"}
    say({"type": "tool_use", "sessionID": new, "part": {"tool": new if number % 2 else "write", "state": tool}})
say({"type": "step_finish", "part": {"reason": "stop"}})
""",
        "opencode",
    )
    with box.server(agent="opencode") as server:
        before = server.peak_memory_kib()
        result = server.answer_to(server.call("run", prompt="p", model="m"))["result"]
        check_ended(check_text(result), result["structuredContent"], RESULT_BYTES)
        # The two ends of the answer, of 4 MB each, some times over.
        assert server.peak_memory_kib() - before < 64 * 1024
