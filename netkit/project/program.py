"""Programs of clusters on this machine, such as scontrol and kubectl."""

import shlex
import subprocess
from collections.abc import Sequence

from netkit.environment import without_secrets

TIMEOUT_S = 60.0


def run_program(command: Sequence[str]) -> tuple[str, str]:
    """Run a program without netkit's secrets; return what it printed, and why it failed, empty if it did not."""
    try:
        done = subprocess.run(  # noqa: S603 (the words are netkit's own; no shell reads them)
            command, env=without_secrets(), capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    except FileNotFoundError:
        return "", f"there is no {command[0]} on this machine"
    except (OSError, subprocess.TimeoutExpired) as error:
        return "", f"{shlex.join(command[:3])} … did not run: {type(error).__name__}"
    if done.returncode == 0:
        return done.stdout, ""
    lines = (done.stderr or done.stdout).strip().splitlines()
    return done.stdout, lines[-1] if lines else f"{command[0]} ended with {done.returncode}"
