"""A real RabbitMQ for benchmarks and tests: a node in a folder of its own, on 127.0.0.1, with TLS, ended with them."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path("/usr/lib/rabbitmq/bin")


class ServerError(Exception):
    """The server does not start, or refuses a command."""


@dataclass(slots=True)
class RabbitServer:
    """A server; `configuration` is its rabbitmq.conf."""

    folder: Path
    configuration: Path
    port: int
    dist_port: int
    epmd_port: int
    _process: subprocess.Popen[bytes] | None = None
    _names: subprocess.Popen[bytes] | None = None
    """Erlang's name server."""

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "HOME": str(self.folder),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_NODENAME": f"netkit{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_DIST_PORT": str(self.dist_port),
            "RABBITMQ_CONFIG_FILE": str(self.configuration),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +S 2:2",
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(self.epmd_port),
        }

    def start(self) -> None:
        """Start the server, and wait until clients can connect."""
        if self._names is None:
            # Else the server starts one that outlives it.
            words = ["epmd", "-address", "127.0.0.1", "-port", str(self.epmd_port)]
            nothing = subprocess.DEVNULL
            self._names = subprocess.Popen(words, env=self.environment, stdout=nothing, stderr=nothing)
        log = self.folder / "output"
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                [PROGRAMS / "rabbitmq-server"],
                env=self.environment,
                cwd=self.folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline_s = time.monotonic() + 300
        while b"Starting broker... completed" not in log.read_bytes():
            if self._process.poll() is not None or time.monotonic() > deadline_s:
                raise ServerError(log.read_text() + self._tail())
            time.sleep(0.1)

    def _tail(self) -> str:
        return "".join(file.read_text(errors="replace")[-3000:] for file in (self.folder / "log").glob("*.log"))

    def kill(self) -> None:
        """Kill the server, as a power failure would."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(20)
            self._process = None

    def freeze(self, *, is_frozen: bool) -> None:
        """Stop the server without an end of its connections, or let it go on."""
        if self._process is None:
            raise ServerError("it does not run")
        os.killpg(self._process.pid, signal.SIGSTOP if is_frozen else signal.SIGCONT)

    def control(self, *arguments: str) -> str:
        """Run rabbitmqctl."""
        command = [str(PROGRAMS / "rabbitmqctl"), "-n", self.environment["RABBITMQ_NODENAME"], "-q", *arguments]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode:
            raise ServerError(done.stdout + done.stderr)
        return done.stdout

    def stop(self) -> None:
        """End the server and the name server that it started."""
        self.kill()
        if self._names is not None:
            self._names.kill()
            self._names.wait(20)


@contextmanager
def rabbit_folder() -> Iterator[Path]:
    """Make a short folder for a server."""
    folder = Path(tempfile.mkdtemp(prefix="nkmq"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
