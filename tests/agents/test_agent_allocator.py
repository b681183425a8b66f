"""Many runs at once do not leave a pool of memory for each of their threads."""

from __future__ import annotations

import platform
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
# How many pools there are when forty threads have each needed memory beyond Python's own small blocks.
COUNT = """
import ctypes, sys, threading
sys.path.insert(0, sys.argv[1])
from termsprawlctl.agents.server import allocator
if sys.argv[2] == "shared":
    allocator.share()
together = threading.Barrier(41)
def work():
    kept = bytearray(20_000)
    together.wait()
    together.wait()
for _ in range(40):
    threading.Thread(target=work).start()
together.wait()
library = ctypes.CDLL(None)
library.fopen.restype = library.tmpfile.restype = ctypes.c_void_p
stream = ctypes.c_void_p(library.fopen(sys.argv[3].encode(), b"w"))
library.malloc_info(0, stream)
library.fclose(stream)
together.wait()
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_threads_share_one_pool_of_memory(tmp_path):
    pools = {}
    for how in ("shared", "each"):
        told = tmp_path / how
        subprocess.run([sys.executable, "-IS", "-c", COUNT, str(ROOT), how, str(told)], check=True, timeout=60)
        pools[how] = told.read_text().count("<heap nr=")
    assert pools["shared"] <= 2
    assert pools["each"] > 2, "else nothing was won"
