"""The project file on disk: merged, never lost, whole after any crash."""

from __future__ import annotations

import fcntl
import json
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from termsprawlctl.base.errors import CtlError
from termsprawlctl.host.canvas import model, numbers, project_file

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def file(tmp_path) -> Path:
    """The path of a project's file, which does not exist yet."""
    directory = tmp_path / ".termsprawl"
    directory.mkdir()
    return directory / "project.json"


def write(file: Path, **content) -> None:
    file.write_text(json.dumps({"version": 1, "rev": 7, "nodes": [], **content}))


def add(tmp_path: Path, text: str):
    return project_file.change(str(tmp_path), lambda doc: model.add_sticky(doc, f"n-{text}", text))


def test_the_first_change_makes_a_private_file(tmp_path):
    add(tmp_path, "first")
    file = tmp_path / ".termsprawl" / "project.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["rev"] == 1
    assert os.listdir(file.parent) == ["project.json"]


def test_the_permissions_of_a_file_stay(tmp_path, file):
    write(file)
    file.chmod(0o644)
    add(tmp_path, "x")
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


@pytest.mark.skipif(os.getuid() != 0, reason="only root can write files of others")
def test_a_file_of_somebody_else_stays_theirs_when_root_works_on_their_project(tmp_path, file):
    write(file)
    file.chmod(0o600)
    os.chown(file, 54321, 54322)
    add(tmp_path, "x")
    status = file.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (54321, 54322, 0o600)
    assert len(json.loads(file.read_text())["nodes"]) == 1


@pytest.mark.parametrize(("rev", "then"), [(7, 8), (0, 1), (7.0, 8), (None, 1), ("7", 1)])
def test_rev_grows_by_one_with_each_write(tmp_path, file, rev, then):
    write(file, rev=rev)
    add(tmp_path, "x")
    assert json.loads(file.read_text())["rev"] == then


def test_an_edit_that_changes_nothing_writes_nothing(tmp_path, file):
    write(file, nodes=[{"id": "a", "position": {"x": 1, "y": 2}}])
    before = file.read_bytes()
    assert project_file.change(str(tmp_path), lambda doc: model.move(doc, "a", 1, 2.0)) == {"x": 1, "y": 2}
    assert file.read_bytes() == before


def test_an_edit_that_fails_leaves_the_file_as_it_was(tmp_path, file):
    write(file, nodes=[{"id": "a"}])
    before = file.read_bytes()

    def edit(doc):
        model.move(doc, "a", 1, 2)
        model.move(doc, "b", 1, 2)

    with pytest.raises(CtlError, match="Unknown node: b"):
        project_file.change(str(tmp_path), edit)
    assert file.read_bytes() == before


def test_everything_that_is_not_understood_is_kept_as_it_was(tmp_path, file):
    odd = {
        "version": 1,
        "viewport": {"zoom": 1.5, "deep": [[[{"a": None}]]]},
        "rev": 3,
        "nodes": [{"id": "w", "type": "whiteboard", "strokes": [1e-7, -0.0, 12345678901234567890]}, 5, None, "x", []],
        "ümlaut": "日本 \U0001f389",
    }
    file.write_text(json.dumps(odd, ensure_ascii=False))
    add(tmp_path, "x")
    written = json.loads(file.read_text())
    new = written["nodes"].pop()
    assert new["data"]["text"] == "x"
    assert json.dumps(written) == json.dumps({**odd, "rev": 4})
    assert "日本" in file.read_text()


def test_a_lone_surrogate_survives(tmp_path, file):
    file.write_bytes(rb'{"version": 1, "nodes": [{"id": "a", "data": {"text": "\ud83d"}}]}')
    add(tmp_path, "x")
    assert project_file.load(str(tmp_path))["nodes"][0]["data"]["text"] == "\ud83d"


def test_what_somebody_else_writes_meanwhile_is_merged(tmp_path, file):
    write(file)
    seen = []

    def edit(doc):
        seen.append(doc["rev"])
        if len(seen) < 4:  # the app, which does not know the lock
            write(file, rev=100 + len(seen), nodes=[{"id": f"app-{len(seen)}"}])
        model.add_sticky(doc, "n-ours", "ours")
        return len(seen)

    assert project_file.change(str(tmp_path), edit) == 4
    written = json.loads(file.read_text())
    assert seen == [7, 101, 102, 103]
    assert written["rev"] == 104
    assert [node["id"] for node in written["nodes"]] == ["app-3", "n-ours"]


def test_a_change_behind_our_back_counts_even_with_the_same_rev_and_size(tmp_path, file):
    write(file, nodes=[{"id": "aa"}])
    seen = []

    def edit(doc):
        seen.append(doc["nodes"][0]["id"])
        if len(seen) == 1:
            times = file.stat()
            write(file, nodes=[{"id": "bb"}])
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        model.add_sticky(doc, "n", "x")

    project_file.change(str(tmp_path), edit)
    assert seen == ["aa", "bb"]
    assert json.loads(file.read_text())["nodes"][0] == {"id": "bb"}


def test_a_file_that_is_removed_meanwhile_is_made_again(tmp_path, file):
    write(file, rev=50)
    seen = []

    def edit(doc):
        seen.append(doc["rev"])
        file.unlink(missing_ok=True)
        model.add_sticky(doc, "n", "x")

    project_file.change(str(tmp_path), edit)
    assert seen == [50, 0]
    assert json.loads(file.read_text())["rev"] == 1


def test_a_file_that_never_stands_still_is_left_to_the_other_side(tmp_path, file):
    write(file)
    counter = iter(range(10_000))

    def edit(doc):
        write(file, rev=next(counter))
        model.add_sticky(doc, "n", "x")

    with pytest.raises(CtlError, match="keeps changing"):
        project_file.change(str(tmp_path), edit)
    assert json.loads(file.read_text())["nodes"] == []
    assert os.listdir(file.parent) == ["project.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"version": 1}', '{"version": 1, "nodes": {}}'])
def test_a_file_that_is_no_project_is_not_touched(tmp_path, file, content):
    file.write_text(content)
    with pytest.raises(CtlError, match="project file"):
        add(tmp_path, "x")
    assert file.read_text() == content


def test_a_newer_version_is_not_touched(tmp_path, file):
    write(file, version=2)
    with pytest.raises(CtlError, match="has version 2, not 1; nothing was changed"):
        add(tmp_path, "x")
    assert json.loads(file.read_text())["rev"] == 7


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path, file):
    target = tmp_path / "elsewhere.json"
    write(target)
    file.symlink_to(target)
    add(tmp_path, "x")
    assert file.is_symlink()
    assert json.loads(target.read_text())["rev"] == 8


def test_a_link_to_nothing_makes_no_file_where_it_points(tmp_path, file):
    target = tmp_path / "not-there"
    file.symlink_to(target)
    with pytest.raises(CtlError, match="link to nothing"):
        add(tmp_path, "x")
    assert not target.exists()


def test_a_full_file_is_refused_before_it_can_no_longer_be_read(tmp_path, file, monkeypatch):
    monkeypatch.setattr(project_file, "MAX_PROJECT_BYTES", 2000)
    add(tmp_path, "small")
    before = file.read_bytes()
    with pytest.raises(CtlError, match="would be larger than 2000 bytes"):
        add(tmp_path, "x" * 2000)
    assert file.read_bytes() == before


def test_a_stopped_writer_is_waited_for_and_then_named(tmp_path, file, monkeypatch):
    monkeypatch.setattr(project_file, "LOCK_WAIT_S", 0.05)
    descriptor = os.open(file.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(CtlError, match="Another process has been writing"):
            add(tmp_path, "x")
    finally:
        os.close(descriptor)
    add(tmp_path, "x")


WRITERS = """\
import sys
sys.path.insert(0, sys.argv[1])
from termsprawlctl.host.canvas import model, project_file
for number in range(40):
    name = f"n-{sys.argv[3]}-{number}"
    project_file.change(sys.argv[2], lambda document: model.add_sticky(document, name, ""))
"""


def test_three_processes_that_write_at_once_lose_nothing(tmp_path, file):
    command = [sys.executable, "-ISB", "-c", WRITERS, str(ROOT), str(tmp_path)]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(3)]
    assert [process.wait(60) for process in processes] == [0, 0, 0]
    written = json.loads(file.read_text())
    assert written["rev"] == 120
    names = [node["id"] for node in written["nodes"]]
    for writer in range(3):
        mine = [name for name in names if name.startswith(f"n-{writer}-")]
        assert mine == [f"n-{writer}-{number}" for number in range(40)]


# Writes documents whose every part carries the number of the write, is killed at a random
# moment a hundred times, and looks at the file each time.
KILLER = """\
import json, os, random, signal, sys, time
sys.path.insert(0, sys.argv[1])
from termsprawlctl.host.canvas import project_file

folder = sys.argv[2]
path = project_file.path_of(folder)

def edit(document):
    mark = document["rev"] + 1
    document["nodes"] = [{"id": f"n-{i}", "mark": mark, "pad": "x" * 100} for i in range(100)]
    document["end"] = mark

random.seed(7)
project_file.change(folder, edit)
last = 1
for attempt in range(100):
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            while True:
                project_file.change(folder, edit)
                os.write(writer, b"x")
        finally:
            os._exit(1)
    os.close(writer)
    os.read(reader, 1)
    # Between none and a few writes later.
    time.sleep(random.random() * 0.008)
    os.kill(child, signal.SIGKILL)
    assert os.WIFSIGNALED(os.waitpid(child, 0)[1]), "the writer failed by itself"
    os.set_blocking(reader, False)
    try:
        done = 1 + len(os.read(reader, 65536))
    except BlockingIOError:
        done = 1
    os.close(reader)
    document = json.loads(open(path, "rb").read())
    marks = {document["rev"], document["end"], *(node["mark"] for node in document["nodes"])}
    assert len(marks) == 1 and len(document["nodes"]) == 100, f"attempt {attempt}: a part of a document"
    # What was reported as written stands there; one more may have been written and not reported.
    assert document["rev"] - last - done in (0, 1), f"attempt {attempt}: a write was lost"
    last = document["rev"]
project_file.change(folder, edit)
print(last, sorted(os.listdir(os.path.dirname(path))))
"""


def test_a_writer_that_is_killed_a_hundred_times_leaves_a_whole_file_and_nothing_else(tmp_path):
    script = tmp_path / "killer.py"
    script.write_text(textwrap.dedent(KILLER))
    done = subprocess.run(
        [sys.executable, "-IB", script, str(ROOT), str(tmp_path)], capture_output=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    rev, _, listing = done.stdout.decode().partition(" ")
    assert int(rev) > 100
    assert listing.strip() == "['project.json']"


@pytest.mark.parametrize("number", ["1e3", "1E3", "-0", "-0.0", "2.50", "1e-7", "12345678901234567890"])
def test_a_number_that_nobody_changes_keeps_its_form(tmp_path, number):
    path = tmp_path / ".termsprawl" / "project.json"
    path.parent.mkdir()
    odd = f'{{"id": "w", "position": {{"x": {number}, "y": 1}}, "more": [{number}, "{number}"]}}'
    path.write_text(f'{{"version": 1, "rev": 1e0, "zoom": {number}, "nodes": [{odd}]}}')
    project_file.change(str(tmp_path), lambda document: model.add_sticky(document, "n-1", "x"))
    text = path.read_text()
    assert odd in text
    assert f'"zoom": {number},' in text
    assert '"rev": 2,' in text
    project_file.change(str(tmp_path), lambda document: model.move(document, "w", 5, 6))
    assert path.read_text().count(f" {number}") == 2


def test_what_nobody_changes_keeps_its_bytes_and_its_neighbours_are_not_written_anew(tmp_path, file, monkeypatch):
    """Escapes, blanks, the order of keys and twice the same key, on a canvas of three thousand nodes."""
    odd = r'{"id":"w",  "t": "\u00e9\/", "t": "\ud83d", "position" : {"y":1,"x": 2.0}, "n": [ 1e3 ]}'
    notes = [json.dumps({"id": f"n-{number}", "position": {"x": number, "y": 0}}) for number in range(3000)]
    file.write_text(f'{{"zoom" : 1.50, "version": 1, "nodes": [{odd}, {", ".join(notes)}], "links": [ ]}}')
    encoded = []
    dumps = numbers.dumps
    monkeypatch.setattr(numbers, "dumps", lambda *given: encoded.append(given) or dumps(*given))
    project_file.change(str(tmp_path), lambda document: model.move(document, "n-7", 5, 6))
    text = file.read_text()
    assert odd in text
    assert '"zoom": 1.50,' in text
    assert '"links": [ ]' in text
    assert all(note in text for index, note in enumerate(notes) if index != 7)
    assert json.loads(text)["nodes"][8]["position"] == {"x": 5, "y": 6}
    assert len(encoded) < 20


def test_a_failed_edit_shows_in_no_later_look(tmp_path, file):
    write(file, nodes=[{"id": "a", "position": {"x": 1, "y": 2}}], links=[{"id": "l", "config": {}}])
    before = json.dumps(project_file.load(str(tmp_path)))

    def edit(document: dict) -> None:
        model.move(document, "a", 5, 6)
        model.resize(document, "a", 500, 500)
        model.group(document, "g", ["a"], "")
        document["links"][0]["config"]["agentMessages"] = True
        raise CtlError("no")

    with pytest.raises(CtlError):
        project_file.change(str(tmp_path), edit)
    assert json.dumps(project_file.load(str(tmp_path))) == before


@pytest.mark.parametrize("age_s", [0, 3600])
def test_what_is_kept_of_a_file_is_not_taken_for_a_newer_one(tmp_path, file, age_s):
    """Same size, same inode, and times set back: written within one tick of the clock, or with care."""
    for number in range(50):
        with file.open("r+b" if number else "wb") as stream:
            stream.write(json.dumps({"version": 1, "nodes": [{"id": f"n-{number:02}"}]}).encode())
            stream.truncate()
        past = file.stat().st_mtime - age_s
        os.utime(file, (past, past))
        assert project_file.load(str(tmp_path))["nodes"][0]["id"] == f"n-{number:02}"
        if number % 2:
            add(tmp_path, "x")


KILLED = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from termsprawlctl.host.canvas import model, project_file
for number in range(10_000):
    project_file.change(sys.argv[2], lambda document: model.add_sticky(document, f"n-{number}", "x"), is_synced=False)
    os.write(1, b"%d\\n" % number)
"""


def test_no_acknowledged_change_is_lost_to_sigkill(tmp_path):
    words = [sys.executable, "-IBc", KILLED, str(ROOT), str(tmp_path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writer:
        acknowledged = [int(writer.stdout.readline()) for _ in range(30)]
        writer.kill()
        acknowledged += [int(line) for line in writer.stdout.read().splitlines() if line.strip()]
    kept = [node["id"] for node in project_file.load(str(tmp_path))["nodes"]]
    assert kept[: len(acknowledged)] == [f"n-{number}" for number in acknowledged]
