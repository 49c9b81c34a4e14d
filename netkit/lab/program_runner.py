"""Programs in the namespaces of a node."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from netkit.lab.namespace_holder import ENVIRONMENT, Holder
from netkit.lab.node import ProgramResult


class ProgramRunner:
    """Runs programs in the namespaces of a node, short ones and those that stay."""

    def __init__(self, holder: Holder, log: Path) -> None:
        self.holder = holder
        self._log = log
        self._programs: dict[str, subprocess.Popen[bytes]] = {}

    def file(self, path: str) -> Path:
        """The path on this side of a file of the node."""
        return self.holder.root / path.lstrip("/")

    def run(self, *command: str, stdin: str = "", timeout_s: float = 60, network: bool = True) -> ProgramResult:
        """Run a program inside the node."""
        words = [*self.holder.enter(network=network), *command]
        try:
            done = subprocess.run(  # noqa: S603
                words,
                input=stdin.encode(),
                capture_output=True,
                check=False,
                timeout=timeout_s,
                env=ENVIRONMENT,
            )
        except subprocess.TimeoutExpired as expired:
            return ProgramResult(
                124, (expired.stdout or b"").decode(errors="replace"), f"no answer in {timeout_s:g} s\n"
            )
        return ProgramResult(
            done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
        )

    def spawn(
        self,
        name: str,
        *command: str,
        fds: Sequence[int] = (),
        environment: Mapping[str, str] | None = None,
        network: bool = True,
    ) -> None:
        """Start a long-running program; the descriptors become its 3, 4 and so on."""
        self.end(name)
        words = [*self.holder.enter(network=network), *command]
        if fds:
            moves = " ".join(f"{3 + index}<&{fd}" for index, fd in enumerate(fds))
            words = ["/bin/bash", "-c", f'exec "$@" {moves}', "spawn", *words]
        with self._log_file() as log:
            self._programs[name] = subprocess.Popen(  # noqa: S603
                words,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=fds,
                env={**ENVIRONMENT, **(environment or {})},
                start_new_session=True,
            )

    def end(self, name: str) -> None:
        """Stop a program that was spawned under a name."""
        program = self._programs.pop(name, None)
        if program is None:
            return
        program.terminate()
        try:
            program.wait(timeout=5)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()

    def is_running(self, name: str) -> bool:
        program = self._programs.get(name)
        return program is not None and program.poll() is None

    def has_died(self, name: str) -> bool:
        """Whether a program ended by itself."""
        program = self._programs.get(name)
        return program is not None and program.poll() is not None

    def _log_file(self) -> BinaryIO:
        return self._log.open("ab")
