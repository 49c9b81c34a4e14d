"""A bound on the whole of something that may hang anywhere: in a name server, a handshake, or a trickle of bytes."""

import threading
from collections.abc import Callable

from netkit.errors import NotifyError, Problem

SEND_S = 20.0
"""How long sending one message may take in all."""


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do something in another thread; NotifyError when it takes longer, whatever becomes of it then."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=guarded, daemon=True)
    worker.start()
    worker.join(seconds)
    if worker.is_alive():
        raise NotifyError(Problem(f"no answer within {seconds:g} s", "see whether it can be reached from here"))
    if failures:
        raise failures[0]
