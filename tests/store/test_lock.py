"""One check of a fabric at a time in a store, even after one was killed."""

import os
import signal

import pytest

from netkit.store import Source
from netkit.store.database import BusyError, alone
from tests.lab.running import until
from tests.store.held import holding

SMALL = Source("small")


def test_a_lock_is_held_until_its_process_ends_or_is_killed(where: str) -> None:
    with holding(where) as other:
        with pytest.raises(BusyError), alone(where, SMALL):
            pass
        with alone(where, Source("small", "lab")), alone(where, Source("large")):
            pass
        os.kill(other.pid, signal.SIGKILL)
        other.wait()

        def is_free() -> bool:
            try:
                with alone(where, SMALL):
                    return True
            except BusyError:
                return False

        until(is_free, "the lock of who died is free")
    with alone(where, SMALL):
        pass
