"""Does it work? Asked of the server itself, by its own argv, and of the client."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import tempfile
import threading
from dataclasses import dataclass

from ..base import jsontext
from ..base.errors import CtlError
from ..base.processes import find_program, raise_if_signalled, run, start
from ..base.processtable import kill_group
from .dialects import Server

HANDSHAKE_S = 30.0  # a start takes well under a second; a loaded machine gets time
LIST_S = 90.0  # some clients start all of their servers, one after the other
REVISION = "2025-06-18"  # of the protocol; one that every client here speaks
# All that the MCP libraries hand on to a server by themselves: what needs more would
# work here and fail in the client.
HANDED_ON = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True)
class Answer:
    """server: its name and version as it gives them; tools: how many it lists."""

    server: str
    tools: int


def handshake(server: Server, environment) -> Answer:
    """Start the server as a client would, and ask for its tools. Raises CtlError with its own words."""
    handed_on = {name: environment[name] for name in HANDED_ON if name in environment}
    messages = [
        _request(1, "initialize", protocolVersion=REVISION, capabilities={}, clientInfo=_CLIENT_INFO),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        _request(2, "tools/list"),
    ]
    answers, words = _converse(server, {**handed_on, **server.environment}, messages)
    described, tools = _result(answers.get(1), words), _result(answers.get(2), words)
    about = described.get("serverInfo") or {}
    return Answer(f"{about.get('name')} {about.get('version')}", len(tools.get("tools") or []))


def listed(argv: list[str], name: str, environment, cwd: str) -> str | None:
    """The line about the server in the client's own list.

    "" when the list does not name it, None when the client is not installed or its list
    fails for reasons of its own.
    """
    program = find_program(argv[0], environment.get("PATH"))
    if program is None:
        return None
    try:
        done = run(
            [program, *argv[1:]],
            timeout_s=LIST_S,
            environment={**environment, "NO_COLOR": "1"},
            cwd=cwd,
            with_its_own=True,  # it starts servers
        )
    except CtlError:
        return None
    if done.status != 0:
        return None
    # Some write the list to standard error.
    text = _COLOUR.sub("", (done.stdout + b"\n" + done.stderr).decode("utf-8", "replace"))
    word = re.compile(rf"(?<![\w./-]){re.escape(name)}(?![\w./-])")
    lines = [re.sub(r"\s+", " ", line.strip(" │┌└●\t\r")) for line in text.split("\n") if word.search(line)]
    return lines[0] if lines else ""


_CLIENT_INFO = {"name": "termsprawlctl install", "version": "1.0.0"}


def _request(number: int, method: str, **params) -> dict:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def _converse(server: Server, environment, messages: list[dict]) -> tuple[dict, str]:
    """(the answers by their ids, the last line of standard error). Raises CtlError."""
    wanted = {message["id"] for message in messages if "id" in message}
    answers: dict = {}
    with tempfile.TemporaryFile() as log:
        try:
            process = start(
                server.argv,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        except OSError as error:
            raise CtlError(
                f"cannot run {server.argv[0]}: {error.strerror}.", "Is the file there, and executable?"
            ) from None
        with process:
            given, answered = process.stdin, process.stdout
            if given is None or answered is None:
                raise AssertionError("both are pipes")
            limit = threading.Timer(HANDSHAKE_S, kill_group, [process.pid])
            limit.start()
            try:
                raise_if_signalled()
                with contextlib.suppress(BrokenPipeError):
                    given.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
                    given.flush()
                while wanted - set(answers) and (line := answered.readline()):
                    answers.update(_answer(line))
                # Its input ends only now: a server takes that for the end of all interest.
                with contextlib.suppress(BrokenPipeError):
                    given.close()
                answered.read()
            finally:
                limit.cancel()
                kill_group(process.pid)
        log.seek(0)
        words = log.read().decode("utf-8", "replace").strip().split("\n")[-1]
    return answers, words or f"no answer (status {process.returncode})."


def _answer(line: bytes) -> dict:
    try:
        message = jsontext.loads(line)
    except ValueError:
        return {}
    return {message.get("id"): message} if isinstance(message, dict) and "method" not in message else {}


def _result(answer: object, words: str) -> dict:
    if isinstance(answer, dict) and isinstance(answer.get("result"), dict):
        return answer["result"]
    error = answer.get("error") if isinstance(answer, dict) else None
    raise CtlError(
        str(error.get("message")) if isinstance(error, dict) else words, "See `termsprawlctl doctor --explain`."
    )
