"""SONiC's own commands, over SSH: each task is one script that runs as root in one channel."""

from netkit.errors import AccessError, Problem
from netkit.platforms.ssh import Done, SshLine, SshTarget

ROOT = "sudo -n sh -s"
NEEDS_PASSWORD = "a password is required"  # noqa: S105 (what sudo says)
TELLING = ("Error:", "Failed to", "error:", "% ")


class SonicShell:
    """The way into one switch."""

    def __init__(self, target: SshTarget) -> None:
        self.device = target.device
        self.timeout_s = target.timeout_s
        self.line = SshLine(target)

    def open(self) -> None:
        """Connect."""
        self.line.open()

    def close(self) -> None:
        """Hang up."""
        self.line.close()

    @property
    def is_alive(self) -> bool:
        """Whether the connection stands."""
        return self.line.is_alive

    def printed(self, command: str) -> str:
        """Return what a command of the account's own prints, errors included."""
        done = self.line.run(command)
        return done.stdout + done.stderr

    def run(self, script: str, timeout_s: float | None = None) -> Done:
        """Run a script as root; what it exits with is for the caller to judge."""
        # Read whole before it runs: what it starts must not find the rest of it on its standard input.
        done = self.line.run(ROOT, timeout_s, f"{{\n{script}\n}} </dev/null\n")
        if done.exit_code != 0 and NEEDS_PASSWORD in done.stderr:
            what = f"{self.device}: sudo asks for a password"
            raise AccessError(Problem(what, "give the account sudo without one, as SONiC's own admin has"))
        return done

    def read(self, script: str) -> str:
        """Return what a script prints that only reads."""
        done = self.run(script)
        if done.exit_code != 0:
            raise AccessError(Problem(f"{self.device}: cannot be read: {reason(done)}", "see whether SONiC is up"))
        return done.stdout

    def garbled(self, what: str) -> AccessError:
        """Return the error for an answer that cannot be one."""
        return AccessError(Problem(f"{self.device}: {what}", "see whether SONiC is up, and try again"))


def reason(done: Done) -> str:
    """Return what of an output says what went wrong: the line that tells, and the one that it announces."""
    lines = [line.strip() for line in done.said.splitlines() if line.strip() and not line.strip().isdecimal()]
    if not lines:
        return f"exit code {done.exit_code}"
    at = next((index for index, line in enumerate(lines) if line.startswith(TELLING)), len(lines) - 1)
    return " ".join(lines[at : at + 2]) if lines[at].endswith(":") else lines[at]
