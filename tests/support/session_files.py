"""The two files that lead to an app, in the app's own layout."""

from __future__ import annotations

import json
from pathlib import Path

TOKEN = "5e551011" * 8
UNSET = object()


class SessionFiles:
    """<root>/agent-tools/{endpoint.json,sessions/agent-1.json}; each write replaces the file."""

    def __init__(self, root: Path, port: int | None = None, *, token: object = TOKEN, url: object = UNSET) -> None:
        self.endpoint = root / "agent-tools" / "endpoint.json"
        self.session = root / "agent-tools" / "sessions" / "agent-1.json"
        self.session.parent.mkdir(parents=True, exist_ok=True)
        self.write_session(token)
        if port is not None or url is not UNSET:
            self.write_endpoint(port, url)

    def write_session(self, token: object = TOKEN) -> None:
        self.session.write_text(
            json.dumps(
                {"nodeId": "agent-1", "projectId": "p-1", "token": token, "status": {"state": "connected"}},
            )
        )
        self.session.chmod(0o600)

    def write_endpoint(self, port: int | None, url: object = UNSET) -> None:
        chosen = f"http://127.0.0.1:{port}/call" if url is UNSET else url
        self.endpoint.write_text(json.dumps({"url": chosen, "instanceId": "7b0c1c7e-0000-4000-8000-000000000001"}))
        self.endpoint.chmod(0o600)
