"""Another user who moves while we work: swaps files, links and directories of a shared place for one another.

The attacker is a process of uid 65534 that does nothing else until the test ends it; whoever
looks first and acts later is caught within some hundred rounds.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

import pytest
from support.other_user import STRANGER, Other

from termsprawlctl.base.errors import CtlError
from termsprawlctl.base.files import write_output
from termsprawlctl.install.configfile import ConfigFile

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user as well")
ROUNDS = 400
PRECIOUS = b'{"precious": true}'


@pytest.fixture
def place():
    """A directory that every user may enter, with one in it that everybody may write to, and a file of ours."""
    root = Path(tempfile.mkdtemp(prefix="race-", dir="/tmp"))
    root.chmod(0o755)
    (root / "shared").mkdir()
    (root / "shared").chmod(0o1777)
    (root / "ours").mkdir(mode=0o700)
    (root / "ours" / "out").write_bytes(PRECIOUS)
    yield root
    shutil.rmtree(root, ignore_errors=True)


def swapping(place: Path, kind: str):
    """An action: what lies at shared/out, or what shared/way is, changes without end."""
    shared, target = str(place / "shared"), str(place / "ours" / "out")
    out, spare, way = f"{shared}/out", f"{shared}/spare", f"{shared}/way"

    def put(make) -> None:
        with contextlib.suppress(OSError):
            make()
            os.replace(spare, out)

    def action(say) -> None:
        os.umask(0)
        os.mkdir(f"{shared}/theirs", 0o777)
        say("ready")
        while True:
            if kind == "directory":
                for other in (f"{shared}/theirs", str(place / "ours")):
                    with contextlib.suppress(OSError):
                        os.symlink(other, spare)
                        os.replace(spare, way)
                with contextlib.suppress(OSError):
                    os.unlink(way)
                    os.mkdir(way, 0o777)
                with contextlib.suppress(OSError):
                    os.rename(way, f"{shared}/{os.urandom(4).hex()}")
                continue
            put(lambda: os.close(os.open(spare, os.O_CREAT | os.O_WRONLY, 0o666)))
            put((lambda: os.mkfifo(spare, 0o666)) if kind == "fifo" else (lambda: os.symlink(target, spare)))
            with contextlib.suppress(OSError):
                os.unlink(out)

    return action


@pytest.mark.parametrize("kind", ["link", "fifo", "directory"])
@pytest.mark.parametrize("sticky", [True, False], ids=["sticky", "not sticky"])
def test_an_output_never_goes_through_what_is_swapped_in_meanwhile(place, kind, sticky):
    (place / "shared").chmod(0o1777 if sticky else 0o777)
    path = str(place / "shared" / ("way/out" if kind == "directory" else "out"))
    written = 0
    with Other(swapping(place, kind)) as other:
        assert other.lines.readline() == "ready\n"
        for _ in range(ROUNDS):
            with contextlib.suppress(OSError):
                write_output(path, b"picture")
                written += 1
        assert (place / "ours" / "out").read_bytes() == PRECIOUS
    assert os.listdir(place / "ours") == ["out"]
    assert written or kind != "link", "no round got as far as to write"


@pytest.mark.parametrize("kind", ["link", "directory"])
def test_a_configuration_is_never_changed_or_read_through_what_is_swapped_in_meanwhile(place, kind):
    path = str(place / "shared" / ("way/out" if kind == "directory" else "out"))
    read = set()
    with Other(swapping(place, kind)) as other:
        assert other.lines.readline() == "ready\n"
        for _ in range(ROUNDS):
            with contextlib.suppress(CtlError, OSError):
                file = ConfigFile(path, private=True)
                read.add(file.text)
                file.write("{}", backed_up=True)
        assert (place / "ours" / "out").read_bytes() == PRECIOUS
    assert os.listdir(place / "ours") == ["out"]
    assert PRECIOUS.decode() not in read


def test_a_configuration_is_not_changed_through_a_link_that_another_user_planted(place):
    link = place / "shared" / "out"
    link.symlink_to(place / "ours" / "out")
    os.lchown(link, STRANGER, STRANGER)
    with pytest.raises(CtlError, match="another user made it"):
        ConfigFile(str(link), private=True)
    os.lchown(link, 0, 0)
    assert ConfigFile(str(link), private=True).text == PRECIOUS.decode()
    assert stat.S_ISLNK(link.lstat().st_mode)
