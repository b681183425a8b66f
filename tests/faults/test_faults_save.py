"""`call --save` under faults: the picture is the old or the new one, whole, and nothing lies beside it."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
from pathlib import Path

import pytest
from support import faults
from support.mcp_app import StandInApp

OLD, NEW = b"old picture", os.urandom(20_000)
FILE = "shot.png"


class Camera:
    """A folder with a picture, and the command that replaces it."""

    def __init__(self, ctl: str, session: str, folder: Path, env: dict[str, str]) -> None:
        self.folder = folder / "pictures"
        self.folder.mkdir()
        self.env = env
        self.argv = [ctl, "call", "browser_screenshot", "--session", session, "--save", str(self.folder / FILE)]

    def reset(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()
        (self.folder / FILE).write_bytes(OLD)

    def run(self, before: tuple | list = ()) -> subprocess.CompletedProcess:
        return faults.completed([*before, *self.argv], self.env)

    def steps(self, log: Path) -> list[faults.Step]:
        self.reset()
        return faults.steps(self.argv, self.folder, log, env=self.env)


@pytest.fixture
def camera(ctl, tmp_path, hermetic_env):
    with StandInApp(tmp_path / "app") as app:
        image = base64.b64encode(NEW).decode()
        app.replies["browser_screenshot"] = {"ok": True, "value": {"image": image, "mimeType": "image/png"}}
        yield Camera(ctl, app.session, tmp_path, hermetic_env)


def test_whichever_step_fails_the_picture_is_whole_and_the_result_still_has_it(camera, tmp_path):
    for step in camera.steps(tmp_path / "trace"):
        camera.reset()
        done = camera.run(faults.failing(step, "ENOSPC"))
        assert os.listdir(camera.folder) == [FILE], step
        saved = (camera.folder / FILE).read_bytes()
        assert saved == (NEW if done.returncode == 0 else OLD), step
        assert done.returncode == 0 or base64.b64encode(NEW).decode() in done.stdout, step


def test_ended_at_whichever_step_the_picture_is_whole_and_the_next_one_clears_up(camera, tmp_path):
    for step in camera.steps(tmp_path / "trace"):
        if step.call in ("fsync", "write", *faults.RENAMES):
            for number in (signal.SIGKILL, signal.SIGTERM):
                camera.reset()
                done = camera.run(faults.dying(step, number))
                assert done.returncode == -number, step
                assert (camera.folder / FILE).read_bytes() in (OLD, NEW), step
                assert number == signal.SIGKILL or os.listdir(camera.folder) == [FILE], step
                assert camera.run().returncode == 0
                assert faults.snapshot(camera.folder) == {FILE: NEW}, step


def test_on_a_full_disk_the_old_picture_stays(camera):
    with faults.small_disk(camera.folder, 64 << 10) as disk:
        (disk / FILE).write_bytes(OLD)
        filled = faults.fill(disk)
        done = camera.run()
        assert done.returncode == 1
        assert "No space left on device" in done.stderr
        filled.unlink()
        assert faults.snapshot(disk) == {FILE: OLD}
        assert camera.run().returncode == 0
        assert faults.snapshot(disk) == {FILE: NEW}
