"""Who may call: one private file per node, found again by its token."""

from __future__ import annotations

import errno
import hmac
import json
import os
import re
import secrets
import threading
import time
from dataclasses import dataclass, field, replace

from ...base.files import private_directory, read_object, remove_quietly, write_atomically
from ...base.layout import DataPaths, is_id
from .status import Status

# The time stamp of a directory may stand still for a clock tick (up to 10 ms) while
# files are added; one as fresh as this is not trusted to be final.
_FRESH_S = 0.1
# A short token could be guessed (the app and this host make 64 digits); no header can carry other characters.
_TOKEN = re.compile(r"[!-~]{32,}")
# Why a file cannot be read for the moment, whatever is in it.
_PASSING = (errno.EMFILE, errno.ENFILE, errno.ENOMEM)


@dataclass(frozen=True)
class Session:
    """Who calls: a node of a project, or a person without a node. The token stays out of every text made of it."""

    node_id: str
    project_id: str
    token: str = field(repr=False)
    status: Status


class SessionStore:
    """The session files of one data directory.

    The files are the truth: what another process adds or removes there counts from the
    next request on. Safe to use from several threads.
    """

    def __init__(self, paths: DataPaths) -> None:
        self._paths = paths
        self._lock = threading.Lock()
        self._sessions: dict[str, Session] = {}
        self._seen_ns: int | None = None

    def provision(self, node_id: str, project_id: str, status: Status) -> Session:
        """The node's session, made with a new token unless it has one already. Raises OSError."""
        with self._lock:
            self._refresh()
            known = self._sessions.get(node_id)
            if known is not None and known.project_id == project_id:
                return known
            return self._write(Session(node_id, project_id, secrets.token_hex(32), status))

    def set_status(self, node_id: str, status: Status) -> Session:
        """Change what the session says of its connection. Raises KeyError when it is gone, OSError."""
        with self._lock:
            self._refresh()
            return self._write(replace(self._sessions[node_id], status=status))

    def revoke(self, node_id: str, project_id: str) -> bool:
        """End the node's session: its token opens nothing from now on; False when the project has none."""
        with self._lock:
            self._refresh()
            known = self._sessions.get(node_id)
            if known is None or known.project_id != project_id:
                return False
            remove_quietly(self._paths.session(node_id))
            del self._sessions[node_id]
            return True

    def find(self, token: str) -> Session | None:
        """The session with this token, compared in constant time over all of them."""
        found = None
        given = token.encode("utf-8", "surrogatepass")
        for session in self.all():
            if hmac.compare_digest(session.token.encode(), given):
                found = session
        return found

    def all(self) -> list[Session]:
        """Every session, as the files stand now."""
        with self._lock:
            self._refresh()
            return list(self._sessions.values())

    def _write(self, session: Session) -> Session:
        private_directory(self._paths.sessions)
        content = {
            "nodeId": session.node_id,
            "projectId": session.project_id,
            "token": session.token,
            "status": session.status.as_json(),
        }
        write_atomically(self._paths.session(session.node_id), json.dumps(content).encode())
        self._sessions[session.node_id] = session
        return session

    def _refresh(self) -> None:
        try:
            changed_ns = os.stat(self._paths.sessions).st_mtime_ns
        except FileNotFoundError:
            self._sessions, self._seen_ns = {}, None
            return
        except OSError:
            return
        if changed_ns == self._seen_ns:
            return
        sessions = {}
        try:
            for name in os.listdir(self._paths.sessions):
                session = _read(os.path.join(self._paths.sessions, name)) if name.endswith(".json") else None
                if session is not None and f"{session.node_id}.json" == name:
                    sessions[session.node_id] = session
        except OSError:
            # No descriptor left, for example: what was known still holds, and is looked at again.
            self._seen_ns = None
            return
        self._sessions = sessions
        self._seen_ns = changed_ns if time.time() - changed_ns / 1e9 > _FRESH_S else None


def _read(path: str) -> Session | None:
    """The session in a file; None when it cannot be one, which then opens nothing.

    Raises OSError when it may be one, but cannot be read now.
    """
    try:
        content = read_object(path)
    except ValueError:
        return None
    except OSError as error:
        if error.errno in _PASSING:
            raise
        return None
    node_id, project_id, token = content.get("nodeId"), content.get("projectId"), content.get("token")
    if not is_id(node_id) or not is_id(project_id) or not isinstance(token, str) or not _TOKEN.fullmatch(token):
        return None
    return Session(str(node_id), str(project_id), token, Status.parse(content.get("status")))
