"""A server as a user starts it: its own process on a free port, queried over HTTP, and ended whatever happens."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from tests.command import NETKIT, ROOT, Process, begin, environment
from tests.lab.running import until

TOKEN = "a-token-for-tests-only-0123456789"  # noqa: S105 (of tests)
PATIENCE_S = 120
GREETING = re.compile(r"https?://127\.0\.0\.1:(\d+)/, the token is in ")


@dataclass(frozen=True)
class Answer:
    code: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def data(self) -> Any:
        return json.loads(self.body)


@dataclass
class Running:
    process: Process
    is_tls: bool
    port: int
    state: Path
    said: IO[bytes]

    @property
    def diary(self) -> Any:
        """The diary of the schedule."""
        files = list(self.state.glob("**/serve/diary.json"))
        return json.loads(files[0].read_bytes()) if files else {"rounds": [], "missed": [], "missed_total": 0}

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        token: str = TOKEN,
        body: str | None = None,
        source: str = "127.0.0.1",
        **headers: str,
    ) -> Answer:
        """Request a path, with the token unless another or none is given."""
        opened = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S, source_address=(source, 0))
        own = {"Authorization": f"Bearer {token}"} if token else {}
        own |= {key.replace("_", "-"): text for key, text in headers.items()}
        try:
            opened.request(method, path, body, own)
            answer = opened.getresponse()
            return Answer(answer.status, {key.lower(): text for key, text in answer.getheaders()}, answer.read())
        finally:
            opened.close()

    def get(self, path: str) -> Any:
        """The data at a path of the API."""
        answer = self.ask(f"/api/v1/{path}")
        assert answer.code == 200, answer.text
        return answer.data

    def ended_rounds(self) -> list[Any]:
        """The finished rounds, including their report if they make one."""
        return [one for one in self.diary["rounds"] if one["ended_s"] is not None]

    def await_run(self) -> None:
        """Wait until a round has stored its run; show the server's output if none does."""
        try:
            until(self._has_run, "the first round is over")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.diary}\n{self.output()}") from None

    def _has_run(self) -> bool:
        assert self.process.poll() is None, "the server has ended"
        return any(one["run"] for one in self.diary["rounds"])

    def output(self) -> str:
        """The output so far."""
        size = os.fstat(self.said.fileno()).st_size
        return os.pread(self.said.fileno(), size, 0).decode()  # the server writes at the position of the file

    def forks(self) -> list[str]:
        """The processes that its fork server has started."""
        (child,) = _children(self.process.pid)
        return _children(child)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        """End it with a signal; return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE_S)


def is_gone(pid: str) -> bool:
    file = Path(f"/proc/{pid}/stat")
    return not file.exists() or file.read_text().rpartition(")")[2].split()[0] == "Z"


def _children(pid: int | str) -> list[str]:
    return Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()


@contextmanager
def serving(
    fabric: Path, state: Path, *options: str | Path, above: Sequence[str] = (), is_tls: bool = False, **changes: str
) -> Iterator[Running]:
    """Serve a fabric for the length of a block; a wrapping command may start it, as in another namespace."""
    words = ["serve", "--fabric", str(fabric), "--listen=127.0.0.1:0", *map(str, options)]
    own = {"NETKIT_STATE_DIR": str(state), "NETKIT_STORE": "", "NETKIT_SECRET_SERVE_TOKEN": TOKEN, **changes}
    with tempfile.TemporaryFile() as said:
        running = Running(_begun(above, words, said, own), is_tls, 0, state, said)
        process = running.process
        try:
            until(lambda: _answers(running), "the server answers")
            yield running
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(PATIENCE_S)


def _begun(above: Sequence[str], words: Sequence[str], said: IO[bytes], variables: Mapping[str, Any]) -> Process:
    """Start netkit: in a fork, or below a command if there is one."""
    if not above:
        return begin(*words, output=said, **variables)
    command = [*above, *NETKIT, *words]
    nothing = subprocess.DEVNULL
    return subprocess.Popen(command, cwd=ROOT, env=environment(**variables), stdin=nothing, stdout=said, stderr=said)


def _answers(running: Running) -> bool:
    assert running.process.poll() is None, running.output()
    greeted = GREETING.search(running.output())
    if greeted is None:
        return False
    running.port = int(greeted[1])
    try:
        if running.is_tls:
            socket.create_connection(("127.0.0.1", running.port), PATIENCE_S).close()
            return True
        return running.ask("/healthz", token="").code == 200
    except OSError:
        return False
