"""Runs in the background, in the queue, and inside other runs; sessions that go on."""

from __future__ import annotations

import json
import os

import pytest
from support.scripted_agent import labels, structured, text
from support.waiting import until

GATED = (
    "begin()\nmessage('Working.')\n"
    'item("command_execution", "started", id="i", command="make test")\n'
    'record("started-" + str(os.getpid()), 1)\n'
    'while not os.path.exists(os.path.join(os.environ["HOME"], "go")): time.sleep(0.01)\n'
    'item("command_execution", id="i", command="make test", exit_code=0)\nend("Tested.")\n'
)


OPENCODE_OK = """\
say({"type": "text", "sessionID": "ses_1", "part": {"messageID": "m", "text": "ok"}})
say({"type": "step_finish", "sessionID": "ses_1", "part": {"reason": "stop"}})
"""
GEMINI_OK = """\
say({"type": "init", "session_id": "ses_1", "model": "m"})
say({"type": "message", "role": "assistant", "content": "ok", "delta": True})
say({"type": "result", "status": "success"})
"""


def began(box):
    return len([name for name in os.listdir(box.home) if name.startswith("started-")])


def test_a_run_in_the_background_is_started_followed_and_fetched(box):
    box.script(GATED)
    with box.server() as server:
        answer = server.answer_to(server.call("run", prompt="p", background=True))
        run_id = structured(answer)["runId"]
        assert structured(answer) == {"status": "running", "runId": run_id}
        assert run_id in text(answer)
        until(lambda: began(box), "the start")
        until(lambda: status(server, run_id).get("step") == "Running: make test", "the step")
        row = status(server, run_id)
        assert row["status"] == "running"
        assert row["elapsedMs"] >= 0
        early = server.answer_to(server.call("run_result", runId=run_id, waitMs=50, token="t"))
        assert structured(early) == {"runId": run_id, "status": "running", "step": "Running: make test"}
        assert early["result"]["isError"] is False
        (box.home / "go").write_text("")
        late = server.answer_to(server.call("run_result", runId=run_id, waitMs=20_000))
        assert structured(late)["answer"] == "Tested."
        assert "--- Activity (2 steps) ---" in text(late)
        assert status(server, run_id)["status"] == "completed"
        again = server.answer_to(server.call("run_result", runId=run_id))
        assert again["result"] == late["result"]


def status(server, run_id=None):
    answer = server.answer_to(server.call("run_status", **({"runId": run_id} if run_id else {})))
    rows = structured(answer)["runs"]
    return rows[0] if run_id else rows


def test_a_run_in_the_background_can_be_cancelled_without_a_trace(box):
    box.script(GATED)
    with box.server() as server:
        run_id = structured(server.answer_to(server.call("run", prompt="p", background=True)))["runId"]
        until(lambda: began(box), "the start")
        answer = server.answer_to(server.call("run_cancel", runId=run_id))
        assert structured(answer)["runs"][0]["status"] == "cancelled"
        assert box.family() == []
        result = server.answer_to(server.call("run_result", runId=run_id))
        assert result["result"]["isError"] is True
        assert structured(result)["status"] == "cancelled"
        assert "make test" in text(result)
        assert box.leftovers() == []


def test_the_end_of_the_server_ends_what_runs_in_the_background(box):
    box.script(GATED)
    with box.server() as server:
        server.answer_to(server.call("run", prompt="p", background=True))
        until(lambda: began(box), "the start")
        server.close()
        assert server.exit_status() == 0
        assert box.processes() == []


def test_unknown_runs_are_named(box):
    with box.server() as server:
        for tool in ("run_status", "run_result", "run_cancel"):
            answer = server.answer_to(server.call(tool, runId="run-0123456789ab"))
            assert answer["result"]["isError"] is True
            assert "there is no run run-0123456789ab" in text(answer)
        assert structured(server.answer_to(server.call("run_status"))) == {"runs": []}


def test_runs_beyond_the_limit_wait_their_turn_and_say_so(box):
    box.script(GATED)
    with box.server("--max-runs", "2") as server:
        calls = [server.call("run", prompt="p", token=number) for number in range(5)]
        until(lambda: began(box) == 2, "two runs")
        server.answer_to(server.ask("ping"))
        told = {}
        while len(told) < 3:
            note = server.notifications.pop(0) if server.notifications else server.read()
            if note["params"]["message"].startswith("Queued"):
                told[note["params"]["progressToken"]] = note["params"]["message"]
        assert began(box) == 2
        dropped = calls[next(iter(told))]
        server.cancel(dropped)
        (box.home / "go").write_text("")
        left = {*calls} - {dropped}
        while left:
            message = server.read()
            if "id" in message:
                left.remove(message["id"])
                assert structured(message)["answer"] == "Tested."
        assert began(box) == 4


def test_a_run_in_the_queue_keeps_its_caller_waiting_with_heartbeats(box):
    box.script(GATED)
    with box.server("--max-runs", "1", HEARTBEAT_MS="100") as server:
        first = server.call("run", prompt="p")
        until(lambda: began(box), "the first run")
        second = server.call("run", prompt="p", token="t")
        beats = 0
        while beats < 3:
            beats += server.read()["params"]["message"] == "Queued: next to start"
        (box.home / "go").write_text("")
        assert structured(server.answer_to(first))["status"] == "completed"
        assert structured(server.answer_to(second))["status"] == "completed"


def test_a_session_is_continued_in_its_own_folder_unless_another_is_named(box, tmp_path):
    box.script('record("argv", [sys.argv[1:], os.getcwd()])\nbegin("0123-session")\nend("ok")\n')
    other = tmp_path / "other"
    other.mkdir()
    with box.server() as server:
        first = structured(server.answer_to(server.call("run", prompt="p", cwd=str(other))))
        server.answer_to(server.call("run", prompt="p", sessionId=first["sessionId"]))
        argv, cwd = box.recorded("argv")
        assert argv[-3:] == ["resume", "0123-session", "-"]
        assert cwd == str(other)
        server.answer_to(server.call("run", prompt="p", sessionId=first["sessionId"], cwd=str(box.project)))
        assert box.recorded("argv")[1] == str(box.project)


@pytest.mark.parametrize(
    ("agent", "events", "word"),
    [
        (
            "opencode",
            OPENCODE_OK,
            "--session=ses_1",
        ),
        (
            "gemini",
            GEMINI_OK,
            "--resume=ses_1",
        ),
    ],
)
def test_a_session_that_lives_in_one_folder_is_refused_another(box, tmp_path, agent, events, word):
    box.script('record("argv", sys.argv[1:])\n' + events, name=agent)
    with box.server("--model", "a/b", agent=agent) as server:
        first = structured(server.answer_to(server.call("run", prompt="p")))
        assert first["sessionId"] == "ses_1"
        server.answer_to(server.call("run", prompt="p", sessionId="ses_1"))
        assert word in box.recorded("argv")
        refused = server.answer_to(server.call("run", prompt="p", sessionId="ses_1", cwd=str(tmp_path)))
        assert refused["result"]["isError"] is True
        assert str(box.project) in text(refused)
        # A folder that does not exist counts as none, so the session's own is next.
        again = structured(server.answer_to(server.call("run", prompt="p", sessionId="ses_1", cwd="/no/such/folder")))
        assert again["cwd"] == str(box.project)


def test_a_session_whose_only_folder_is_gone_is_refused_at_once(box, tmp_path):
    box.script(OPENCODE_OK, name="opencode")
    folder = tmp_path / "gone"
    folder.mkdir()
    with box.server("--model", "a/b", agent="opencode") as server:
        server.answer_to(server.call("run", prompt="p", cwd=str(folder)))
        folder.rmdir()
        refused = server.answer_to(server.call("run", prompt="p", sessionId="ses_1"))
        assert refused["result"]["isError"] is True
        assert f"{folder}, which is gone" in text(refused)


def test_an_agent_that_starts_this_server_again_is_refused(box):
    # The inner server gets a clean environment, as some clients hand it over.
    box.script(
        "begin()\n"
        f"server = [{box.ctl!r}, 'mcp', 'agent', 'codex']\n"
        "env = {name: os.environ[name] for name in ('PATH', 'HOME')}\n"
        "inner = subprocess.Popen(server, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "for ask in ({'method': 'tools/list'}, {'method': 'tools/call', "
        "'params': {'name': 'run', 'arguments': {'prompt': 'p'}}}):\n"
        "    inner.stdin.write(json.dumps({'jsonrpc': '2.0', 'id': 1, **ask}).encode() + b'\\n')\n"
        "    inner.stdin.flush()\n"
        "    answer = json.loads(inner.stdout.readline())\n"
        "end(json.dumps(answer['result']))\n"
    )
    with box.server() as server:
        answer = structured(server.answer_to(server.call("run", prompt="p")))
    inner = json.loads(answer["answer"])
    assert inner["isError"] is True
    assert inner["content"][0]["text"].startswith("refused: this server was started by an agent")
    assert "MCP configuration" in inner["content"][0]["text"]


FIRST_RUN = (
    "data = os.path.join(os.environ['HOME'], '.local', 'share', 'opencode')\n"
    "base = os.path.join(data, 'opencode.db')\n"
    "if not os.path.exists(base):\n"
    "    os.makedirs(data, exist_ok=True)\n"
    "    try:\n"
    "        os.close(os.open(data + '/migrating', os.O_CREAT | os.O_EXCL))\n"
    "    except FileExistsError:\n"
    "        sys.exit('Failed query: CREATE TABLE workspace')\n"
    "    time.sleep(0.5)\n"
    "    open(base, 'w').close()\n"
    "    os.unlink(data + '/migrating')\n"
    'say({"type":"step_start","sessionID":"ses_1","part":{}})\n'
    'say({"type":"text","sessionID":"ses_1","part":{"messageID":"m","text":"ok"}})\n'
    'say({"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop"}})\n'
)


def test_the_first_run_of_a_home_is_alone_and_the_others_follow(box):
    box.script(FIRST_RUN, name="opencode")
    with box.server("--model", "a/b", agent="opencode") as one, box.server("--model", "a/b", agent="opencode") as two:
        calls = [(server, server.call("run", prompt="p", token="t")) for server in (one, one, two)]
        waiting = {(id(server), call): server for server, call in calls}
        for server in (one, two):
            while any(owner is server for owner in waiting.values()):
                message = server.read()
                if "id" in message:
                    del waiting[(id(server), message["id"])]
                    assert structured(message)["answer"] == "ok", text(message)
                else:
                    server.notifications.append(message)
        # Whoever comes first, at least two of the three have to wait.
        assert "Waiting: another first run in this home" in labels(one) + labels(two)


def test_a_server_that_is_killed_while_it_waits_for_the_first_run_of_another_leaves_nothing(box):
    box.script('record("one", 1)\ntime.sleep(600)\n', name="opencode")
    with box.server("--model", "a/b", agent="opencode") as one, box.server("--model", "a/b", agent="opencode") as two:
        one.call("run", prompt="p")
        until((box.home / "one").exists, "the first run")
        before = box.leftovers()
        two.call("run", prompt="p", token="t")
        while "Waiting: another first run in this home" not in labels(two):
            two.notifications.append(two.read())
        two.process.kill()
        two.process.wait()
        assert box.leftovers() == before


def test_a_run_that_lost_the_race_of_first_runs_is_tried_once_more(box):
    body = (
        "if not os.path.exists(os.environ['HOME'] + '/once'):\n"
        "    record('once', 1)\n    sys.exit('database is locked')\n"
    )
    box.script(body + FIRST_RUN, name="opencode")
    with box.server("--model", "a/b", agent="opencode") as server:
        assert structured(server.answer_to(server.call("run", prompt="p")))["answer"] == "ok"


@pytest.mark.parametrize("agent", ["opencode", "claude", "gemini"])
def test_what_a_cli_leaves_in_its_directory_for_temporary_files_goes_with_the_run(box, agent):
    box.script("open(os.environ['TMPDIR'] + '/left.so', 'w')\nrecord('tmp', os.environ['TMPDIR'])\n", name=agent)
    with box.server("--model", "a/b", agent=agent) as server:
        server.answer_to(server.call("run", prompt="p"))
    assert box.recorded("tmp").startswith(str(box.temporary))
    assert box.leftovers() == []


def test_an_opencode_without_any_chosen_model_gets_one_that_chats_and_calls_tools(box):
    def model(name, provider, date, tools=True, output="text", price=1):
        sides = {
            side: {"text": side == "input" or output == "text", "image": output == "image"}
            for side in ("input", "output")
        }
        return {
            "id": name,
            "providerID": provider,
            "status": "active",
            "release_date": date,
            "cost": {"output": price},
            "capabilities": {"toolcall": tools, **sides},
        }

    models = [
        model("big-pickle", "opencode", "2026-01-01"),
        model("embedding", "mine", "2026-09-01", tools=False),
        model("painter", "mine", "2026-08-01", output="image"),
        model("older", "mine", "2025-01-01"),
        model("chat", "mine", "2026-02-01"),
        model("luxury", "mine", "2026-03-01", price=100),
    ]
    listing = "".join(f"{entry['providerID']}/{entry['id']}\n{json.dumps(entry, indent=2)}\n" for entry in models)
    box.script(
        f"if sys.argv[1] == 'models':\n    sys.stdout.write({listing!r})\n    sys.exit()\n"
        "record('argv', sys.argv[1:])\n" + FIRST_RUN,
        name="opencode",
    )

    def asked_for(**call):
        with box.server(agent="opencode") as server:
            found = structured(server.answer_to(server.call("run", prompt="p", **call)))
        words = [word for word in box.recorded("argv") if word.startswith("--model=")]
        assert words == ([f"--model={found['model']}"] if words else [])
        return words

    assert asked_for() == ["--model=mine/chat"]
    assert asked_for(model="other/one") == ["--model=other/one"]
    (box.project / "opencode.json").write_text('{\n  // mine\n  "model": "x/y"\n}')
    assert asked_for() == []
