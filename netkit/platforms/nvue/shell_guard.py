"""A timer on the switch that takes back a change of several applies, which NVUE's own confirmation cannot span.

It runs detached from the login, so that it outlives sshd and netkit. Whoever renames its file first wins: the timer
when the time is up, or the one who confirms. Under its lock nothing is applied any more once the time is up.
"""

import shlex

from netkit.errors import DeviceError, Problem
from netkit.platforms.ssh import SshLine

FILE = "~/.netkit-revert"
LOCK = "~/.netkit-revert.lock"
TAKEN, BUSY, LATE = 77, 75, 76
MESSAGE = "netkit: not confirmed in time"
IS_ARMED = f"[ -e {FILE} ] && read -r group revision < {FILE} && kill -s 0 -- -$group 2>/dev/null"
# Before a command of NVUE's own: exit with TAKEN when the change is one of these.
UNLESS_ARMED = f"if {IS_ARMED}; then exit {TAKEN}; fi; "
DISARM = f"mv {FILE} {FILE}.taken 2>/dev/null || exit 1; read -r group revision < {FILE}.taken; rm -f {FILE}.taken"


class RevertTimer:
    """The timer of one switch."""

    def __init__(self, device: str, line: SshLine) -> None:
        self.device = device
        self.line = line

    def arm(self, revision: str, seconds: int) -> None:
        """Go back to a revision after some seconds."""
        revision = shlex.quote(revision)
        back = f"mv {FILE} {FILE}.late && nv config apply {revision} -y -m '{MESSAGE}'; rm -f {FILE}.late"
        timer = f"umask 077; echo $$ {revision} > {FILE} && sleep {seconds} && flock {LOCK} sh -c {shlex.quote(back)}"
        wait = f"for i in $(seq 100); do [ -s {FILE} ] && exit 0; sleep 0.1; done; exit 1"
        begin = f"setsid sh -c {shlex.quote(timer)} </dev/null >/dev/null 2>&1 &"
        done = self.line.run(f"if {IS_ARMED}; then exit {BUSY}; fi; rm -f {FILE}; {begin} {wait}")
        if done.exit_code == BUSY:
            raise DeviceError(Problem(f"{self.device}: a change waits to be confirmed", "confirm it, or wait"))
        if done.exit_code != 0:
            what = f"{self.device}: no timer can be set that would take the change back"
            raise DeviceError(Problem(what, "see whether its disk is full"))

    def within(self, command: str) -> str:
        """Return a command that runs only while the timer does, else exits with LATE."""
        return f"flock {LOCK} sh -c {shlex.quote(f'[ -e {FILE} ] || exit {LATE}; {command}')}"

    def disarm(self) -> None:
        """Keep what was applied."""
        self._end("kill -s TERM -- -$group")

    def fire(self, timeout_s: float) -> None:
        """Go back now."""
        self._end(f"kill -s TERM -- -$group; nv config apply $revision -y -m '{MESSAGE}'", timeout_s)

    def _end(self, command: str, timeout_s: float | None = None) -> None:
        done = self.line.run(f"{DISARM}; {command}", timeout_s)
        if done.exit_code != 0:
            what = f"{self.device}: the change was taken back before it was confirmed"
            raise DeviceError(Problem(what, "see what took so long, and apply it again"))
