"""A model's service on loopback that plays a script, so that real coding-agent CLIs run whole tasks without one.

It speaks four streaming APIs: OpenAI Responses (codex), OpenAI Chat Completions (opencode),
Anthropic Messages (claude) and Gemini (gemini); one module each.

A script is `{"turns": [TURN, ...], "side": TEXT}`; `side` answers requests that offer no
tools (titles of sessions and the like). A TURN is one reply of the model, every key optional:

    reasoning     text of a reasoning block, sent first
    text          what the model says; `phase` labels it (Responses API only)
    repeat        {"unit": TEXT, "times": N}: appended to the text
    calls         tool calls, sent last; the CLI runs them and asks for the next turn
    items         literal output items (Responses API only)
    usage         {"input": N, "cached": N, "output": N, "reasoning": N}
    delay         seconds before the first byte
    error         {"status": N, "message": TEXT, "times": N, "retry_after": S}: an HTTP error
                  instead; `times` limits it to the first so many tries
    stream_error  an error event in the middle of the stream
    hang          "connect": never answer; "stream": fall silent half way
    cut           true: drop the connection half way

A call names an intention, which becomes whatever tool the CLI offers for it (tools.py):
`{"do": "run", "command": ...}`, `create` path content, `edit` path old new, `delete` path,
`read` path, `search` pattern, `find` pattern, `plan` items done; or an MCP tool,
`{"mcp": SERVER, "tool": NAME, "args": {}}`; or a literal one, `{"name": ..., "args": {}}`,
`{"name": ..., "input": TEXT}`, with "namespace" where tools are grouped.

Which turn comes next is read off each request's conversation, so repeated requests, resumed
sessions and several runs at once need no state.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

from .server import serve


class FakeProvider:
    """`with FakeProvider(script) as provider:`; provider.url, .requests (as they came, with their bodies).

    `script` is a script itself, a file of one, or a folder of files: then the first segment
    of the URL's path names the file, `<url>/NAME/v1/...`.
    """

    def __init__(self, script: dict | str | Path, port: int = 0) -> None:
        self._script = script if isinstance(script, dict) else Path(script)
        self.requests: list[dict] = []
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._tries: dict[tuple, int] = {}
        self._http = serve(self, port)
        self.port: int = self._http.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def __enter__(self):
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._http.server_close()

    def asked(self) -> list[dict]:
        """The bodies of the requests that offered tools, which are the script's own."""
        return [request["body"] for request in self.requests if request["tools"]]

    # --- for the server -------------------------------------------------------------------

    def script_for(self, path: str) -> dict | None:
        """The script that a request's path asks for, None when there is none."""
        if isinstance(self._script, dict):
            return self._script
        file = self._script
        if file.is_dir():
            file = file / f"{Path(path.split('/')[1]).name}.json"
        return json.loads(file.read_text()) if file.is_file() else None

    def record(self, request: dict) -> None:
        with self._lock:
            self.requests.append(request)

    def count_try(self, session: str, turn: int) -> int:
        """How often this turn has been asked for in this session, this time included."""
        with self._lock:
            self._tries[session, turn] = self._tries.get((session, turn), 0) + 1
            return self._tries[session, turn]
