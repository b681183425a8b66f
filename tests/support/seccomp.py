"""A real sandbox: one system call fails with EPERM, as in the sandboxes of coding agents."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import subprocess
import sys

import pytest

NUMBERS = {"x86_64": {"socket": 41, "connect": 42}, "aarch64": {"socket": 198, "connect": 203}}


def run_without(argv: list, env: dict[str, str], name: str) -> subprocess.CompletedProcess:
    """Run a program that may not use the system call; skips the test where that cannot be arranged."""
    machine = os.uname().machine
    if sys.platform != "linux" or machine not in NUMBERS:
        pytest.skip(f"no seccomp system call numbers for {sys.platform} {machine}")
    try:
        return subprocess.run(
            argv,
            env=env,
            capture_output=True,
            check=False,
            preexec_fn=lambda: _deny(NUMBERS[machine][name]),
        )
    except subprocess.SubprocessError:
        pytest.skip("this machine forbids seccomp filters")


def _deny(number: int) -> None:
    """In this process and its children, make one system call fail."""
    load, jump_if_equal, give_back = 0x20, 0x15, 0x06
    program = [
        struct.pack("HBBI", load, 0, 0, 0),  # the system call's number
        struct.pack("HBBI", jump_if_equal, 0, 1, number),
        struct.pack("HBBI", give_back, 0, 0, 0x00050000 | errno.EPERM),  # SECCOMP_RET_ERRNO
        struct.pack("HBBI", give_back, 0, 0, 0x7FFF0000),  # SECCOMP_RET_ALLOW
    ]
    filters = ctypes.create_string_buffer(b"".join(program))
    header = struct.pack("HxxxxxxP", len(program), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, header, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")
