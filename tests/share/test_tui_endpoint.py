"""What the adapter's side refuses before it connects to anything."""

from __future__ import annotations

import os
import socket
import stat

import pytest
from support.tui_endpoint import GENERATION, INSTANCE, MEMBERS, TOKEN, FakeEndpoint

from termsprawlctl.base.errors import UsageError
from termsprawlctl.share import endpoint


@pytest.fixture
def fake(tmp_path):
    made = FakeEndpoint(tmp_path)
    yield made
    made.close()


def refusal(path) -> str:
    with pytest.raises(endpoint.EndpointError) as caught:
        endpoint.load(str(path))
    assert TOKEN not in str(caught.value)
    return str(caught.value)


def test_an_endpoint_that_is_right_in_every_way_is_read(fake):
    loaded = endpoint.load(fake.path)
    assert (loaded.members.instance_id, loaded.members.generation, loaded.members.token) == (
        INSTANCE,
        GENERATION,
        TOKEN,
    )
    assert loaded.socket_path == str(fake.folder / "s")
    assert TOKEN not in repr(loaded)


def test_a_relative_path_is_refused(fake, monkeypatch):
    monkeypatch.chdir(fake.folder)
    assert "not absolute" in refusal("endpoint.json")


def test_another_file_name_is_refused(fake):
    other = fake.folder / "other.json"
    fake.file.rename(other)
    assert "endpoint.json" in refusal(other)


def test_a_path_that_is_no_path_is_refused():
    assert refusal("/tmp/\0/endpoint.json")


def test_a_missing_endpoint_is_refused(fake):
    fake.file.unlink()
    assert "No such file" in refusal(fake.path)


@pytest.mark.parametrize("which", ["folder", "parent", "file", "dots"])
def test_a_symlink_or_a_detour_in_the_path_is_refused(fake, tmp_path, which):
    if which == "file":
        real = fake.folder / "real.json"
        fake.file.rename(real)
        fake.file.symlink_to(real)
        path = fake.file
    elif which == "dots":
        path = f"{fake.folder}/../{fake.folder.name}/endpoint.json"
    else:
        link = tmp_path / "link"
        link.symlink_to(fake.folder if which == "folder" else fake.folder.parent)
        path = link / "endpoint.json" if which == "folder" else link / fake.folder.name / "endpoint.json"
    assert "symlink" in refusal(path)


def test_a_symlink_instead_of_the_socket_is_refused(fake):
    (fake.folder / "s").rename(fake.folder / "real")
    (fake.folder / "s").symlink_to("real")
    assert "not a unix socket" in refusal(fake.path)


@pytest.mark.parametrize("mode", [0o755, 0o750, 0o500, 0o777, 0o1700])
def test_a_directory_of_another_mode_is_refused(fake, mode):
    fake.folder.chmod(mode)
    assert f"{mode:04o} instead of 0700" in refusal(fake.path)


@pytest.mark.parametrize("mode", [0o644, 0o666, 0o640, 0o400, 0o700])
@pytest.mark.parametrize("name", ["endpoint.json", "s"])
def test_a_file_or_socket_of_another_mode_is_refused(fake, name, mode):
    (fake.folder / name).chmod(mode)
    assert f"{mode:04o} instead of 0600" in refusal(fake.path)


@pytest.mark.parametrize("name", ["", "endpoint.json", "s"])
def test_what_belongs_to_another_user_is_refused(fake, name):
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(fake.folder / name, 12345, -1)
    assert "another user" in refusal(fake.path)


def test_a_fifo_instead_of_the_socket_or_the_file_is_refused_without_waiting(fake):
    (fake.folder / "s").unlink()
    os.mkfifo(fake.folder / "s", 0o600)
    assert "not a unix socket" in refusal(fake.path)
    fake.file.unlink()
    os.mkfifo(fake.file, 0o600)
    assert "not a regular file" in refusal(fake.path)


def test_a_directory_instead_of_the_file_is_refused(fake):
    fake.file.unlink()
    fake.file.mkdir(mode=0o600)
    assert "not a regular file" in refusal(fake.path)


@pytest.mark.parametrize(
    "members",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff",
        {**MEMBERS, "pid": 1},
        {key: value for key, value in MEMBERS.items() if key != "generation"},
        {**MEMBERS, "version": 2},
        {**MEMBERS, "version": "1"},
        {**MEMBERS, "version": True},
        {**MEMBERS, "instanceId": "x"},
        {**MEMBERS, "generation": None},
        {**MEMBERS, "token": TOKEN.upper()},
        {**MEMBERS, "token": TOKEN[:-1]},
        {**MEMBERS, "token": TOKEN + "0"},
        {**MEMBERS, "token": TOKEN + "\n"},
        {**MEMBERS, "token": None},
    ],
    ids=lambda members: repr(members).replace(TOKEN, "T")[:60],
)
def test_json_of_another_shape_is_refused(fake, members):
    fake.write(members)
    assert refusal(fake.path)


def test_a_file_may_have_16_kib_and_not_one_byte_more(fake):
    data = fake.file.read_bytes()
    fake.write(data + b" " * (16_384 - len(data)))
    assert endpoint.load(fake.path).members.token == TOKEN
    fake.write(data + b" " * (16_385 - len(data)))
    assert "larger than 16384 bytes" in refusal(fake.path)


@pytest.mark.parametrize("swap", ["file", "symlink", "fifo", "mode"])
def test_a_file_that_is_swapped_between_the_check_and_the_open_is_refused(fake, monkeypatch, swap):
    def swapped_open(path, flags, *rest, **options):
        monkeypatch.undo()
        if swap == "mode":
            fake.file.chmod(0o644)
        else:
            fake.file.rename(fake.folder / "old")
            if swap == "file":
                fake.write(MEMBERS)
            elif swap == "symlink":
                fake.file.symlink_to("old")
            else:
                os.mkfifo(fake.file, 0o600)
        return os.open(path, flags, *rest, **options)

    monkeypatch.setattr(endpoint.os, "open", swapped_open)
    assert refusal(fake.path)


def test_no_descriptor_is_left_open_by_a_refusal(fake):
    fake.write(b"{")
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        refusal(fake.path)
    after = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    assert after == before


def test_windows_is_refused_at_once():
    with pytest.raises(UsageError, match="POSIX"):
        endpoint.require_posix("nt")


def test_the_fixture_is_what_the_checks_want(fake):
    """Otherwise every refusal above might have another reason."""
    assert stat.S_IMODE(fake.folder.stat().st_mode) == 0o700
    assert isinstance(fake.listener, socket.socket)
