"""Answers of megabytes: whole where a result has room for them, else counted, and whole in a file."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.scripted_agent import structured, text
from support.waiting import until

SIZE = 900_000
CLAUDE = """
sys.stdin.read()
say({"type": "assistant", "message": {"id": "m", "content": [{"type": "text", "text": "A" * 450_000 + "B" * 450_000}]}})
say({"type": "result", "subtype": "success", "is_error": False, "result": "A" * 450_000 + "B" * 450_000})
"""
CODEX = """
sys.stdin.read()
begin()
end("A" * 450_000 + "B" * 450_000)
"""
PLAIN = """
sys.stdin.read()
sys.stdout.write("A" * 450_000 + "B" * 450_000)
"""
EACH = pytest.mark.parametrize(
    ("agent", "script", "variables"),
    [("codex", CODEX, {}), ("claude", CLAUDE, {}), ("codex", PLAIN, {"STRUCTURED": "0"})],
    ids=["codex", "claude", "plain"],
)
ANSWER = "A" * 450_000 + "B" * 450_000


@EACH
def test_an_answer_that_a_result_can_hold_is_whole_in_it(box, agent, script, variables):
    box.script(script, agent)
    with box.server("--result-bytes", "2000000", agent=agent, **variables) as server:
        response = server.answer_to(server.call("run", prompt="p"))
        assert structured(response)["answer"] == ANSWER
        assert text(response).startswith(ANSWER)
        assert "fullOutput" not in structured(response)


@EACH
@pytest.mark.parametrize("limit", [11_000, 500_000])
def test_an_answer_that_a_result_cannot_hold_is_whole_in_a_file_and_what_is_missing_is_counted(
    box, agent, script, variables, limit
):
    box.script(script, agent)
    with box.server("--result-bytes", str(limit), agent=agent, **variables) as server:
        response = server.answer_to(server.call("run", prompt="p"))
        structure = structured(response)
        assert Path(structure["fullOutput"]).read_text().startswith(ANSWER)
        for answer in (structure["answer"], text(response)):
            assert answer.startswith("AAAA")
            before, _, after = answer.partition("\n\n[… about ")
            missing = int(after.split(" ")[0])
            kept = before.count("A") + after.partition("…]\n\n")[2].partition("\n\n---")[0].count("B")
            assert kept + missing == SIZE


def test_a_cli_that_knows_the_mark_of_what_is_left_out_confuses_nothing(box):
    box.script("""
sys.stdin.read()
mark = os.environ["TERMSPRAWLCTL_AGENT_RUN"]
begin()
message("A" * 900_000)
end(f"\\u2026[{mark} 7]\\u2026 \\u2026[{mark} 99999999999999999999]\\u2026 answered")
""")
    with box.server("--result-bytes", "2000") as server:
        assert structured(server.answer_to(server.call("run", prompt="p")))["answer"].endswith(" answered")


def test_a_run_whose_cli_has_printed_more_than_can_soon_be_read_can_be_cancelled(box):
    box.script("""
sys.stdin.read()
begin()
for _ in range(40):
    sys.stdout.write('{"type":"turn.started"}\\n' * 40_000)
end("done")
record("printed", True)
""")
    with box.server() as server:
        started = structured(server.answer_to(server.call("run", prompt="p", background=True)))
        until((box.home / "printed").exists, "the CLI has printed all")
        server.answer_to(server.call("run_cancel", runId=started["runId"]))
        ended = structured(server.answer_to(server.call("run_result", runId=started["runId"])))
        assert (ended["status"], ended["error"]["code"]) == ("cancelled", "cancelled")
