"""The netkit command with a fault injected at a step: FAULT DEVICE STEP NTH LAB, then its arguments.

FAULT is the name of a signal, `restart`, or a fault of the lab; DEVICE is `-` for a step of the whole run.
"""

import os
import signal
import subprocess
import sys

from netkit.cli import main
from netkit.deploy import Journal
from netkit.deploy.journal import JournalEntry
from tests.command import NETKIT


def strike(lab: str, fault: str, device: str) -> None:
    """Inject a fault."""
    if fault.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, fault))
        return
    words = ["restart", device] if fault == "restart" else ["break", fault, device]
    subprocess.run([*NETKIT, "lab", *words, "--lab", lab], check=True, stdout=subprocess.DEVNULL)


def arm(fault: str, device: str, step: str, nth: str, lab: str) -> None:
    """Inject a fault once a step is on disk for the nth time; preflight steps before the first wave do not count."""
    write, left = Journal._write, int(nth)  # noqa: SLF001 (each step goes through it)

    def struck(self: Journal, entry: JournalEntry) -> None:
        nonlocal left
        write(self, entry)
        if (entry.step, entry.device or "-") == (step, device) and (entry.wave or device == "-"):
            left -= 1
            if left == 0:
                strike(lab, fault, device)

    Journal._write = struck  # type: ignore[method-assign]  # noqa: SLF001


if __name__ == "__main__":
    arm(*sys.argv[1:6])
    sys.argv[1:] = sys.argv[6:]
    main()
