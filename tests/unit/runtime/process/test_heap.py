"""What a process has freed stays with it: counted in faults of pages, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

BLOCKS = """
import resource, sys
from esault.runtime.process.heap import keep_freed
if sys.argv[1] == "kept" and not keep_freed():
    sys.exit(3)
for warm in (True, False):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(50):
        several = [bytes(600_000) for _ in range(4)]
        del several
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how):
    ran = subprocess.run([sys.executable, "-c", BLOCKS, how], capture_output=True, text=True)
    if ran.returncode == 3:
        pytest.skip("the C library of this system cannot be told")
    assert not ran.returncode, ran.stderr
    return int(ran.stdout)


def test_blocks_that_come_and_go_are_not_new_to_the_system_each_time():
    assert faults("kept") * 10 < faults("as it is")
