"""A home directory, and `install` in it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from support.mcp_app import StandInApp

from termsprawlctl.install import clients
from termsprawlctl.install.dialects import Server
from termsprawlctl.install.plan import Plan


class Home:
    """`home.run(...)` runs the built file there; the session is that of an app that answers."""

    def __init__(self, ctl: str, folder: Path, env: dict[str, str], session: str) -> None:
        self.ctl = ctl
        self.folder = folder
        self.project = folder / "project"
        self.project.mkdir(parents=True)
        self.session = session
        self.env = {**env, "HOME": str(folder)}

    def run(self, *words: str, status: int | None = 0, **env: str) -> subprocess.CompletedProcess:
        done = subprocess.run(
            [self.ctl, *words],
            env={**self.env, **env},
            cwd=self.project,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert status is None or done.returncode == status, done.stdout + done.stderr
        return done

    def install(self, client: str, *words: str, **options) -> subprocess.CompletedProcess:
        return self.run("install", client, "--session", self.session, *words, **options)

    def uninstall(self, client: str, *words: str, **options) -> subprocess.CompletedProcess:
        return self.run("uninstall", client, *words, **options)

    def facts(self, client: str, *words: str) -> dict:
        return json.loads(self.install(client, "--json", *words).stdout)

    def plan(self, client: str, *words: str, removing: bool = False) -> Plan:
        """What `install` or `uninstall` plans for these words of `mcp`; quicker than a process."""
        argv = [self.ctl, "mcp", *(words or ("--session", self.session))]
        name = f"termsprawl-{words[1]}" if words else "termsprawl"
        where = (client, name, clients.USER, clients.Place(self.env, "Linux", str(self.project)), None)
        return Plan.uninstall(*where) if removing else Plan.install(Server(argv, {}), *where)

    def put(self, name: str, text: str) -> Path:
        """Write a file below the home directory, every byte as given."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
        return path


@pytest.fixture
def app(tmp_path):
    with StandInApp(tmp_path / "app") as running:
        yield running


@pytest.fixture
def home(ctl, app, tmp_path, hermetic_env):
    return Home(ctl, tmp_path / "home", hermetic_env, str(app.session))
