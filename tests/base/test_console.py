"""The process's own standard streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# A child's own view of 0, 1 and 2, reported over a descriptor that is none of them.
PARENT = """
import subprocess, sys
sys.path.insert(0, sys.argv[1])
from termsprawlctl.base.console import reserve_standard_descriptors
reserve_standard_descriptors()
look = "import os; os.write(9, b''.join(b'%d' % os.path.exists(f'/proc/self/fd/{n}') for n in range(3)))"
subprocess.run([sys.executable, "-ISBc", look], pass_fds=[9], check=True)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="a process is asked for its descriptors by /proc")
@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
def test_a_child_has_the_standard_streams_that_its_parent_lacked(closed):
    line = f'exec 9>&1; exec "$0" -ISBc "$1" "$2" {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable, PARENT, ROOT], capture_output=True, check=True, timeout=60)
    assert done.stdout == b"111"
