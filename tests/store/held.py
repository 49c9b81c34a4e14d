"""A process that holds the lock of a fabric until it is killed."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from tests.command import NETKIT, ROOT, environment

HOLDS = """
import sys, time
from netkit.store import Source
from netkit.store.database import alone
with alone(sys.argv[1], Source("small")):
    print("held", flush=True)
    time.sleep(600)
"""


@contextmanager
def holding(where: str) -> Iterator[subprocess.Popen[str]]:
    """Have another process hold the lock for the length of a block."""
    words = [NETKIT[0], "-c", HOLDS, where]
    with subprocess.Popen(words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()
