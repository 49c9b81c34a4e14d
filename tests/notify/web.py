"""A web server on loopback that accepts or rejects messages as a test asks."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@dataclass
class Got:
    """A received message."""

    path: str
    headers: Mapping[str, str]
    data: bytes

    @property
    def value(self) -> Any:
        return json.loads(self.data)


@dataclass
class Web:
    """The server: its received messages, and its answers."""

    port: int = 0
    got: list[Got] = field(default_factory=list)
    answer: Callable[[Got], int] = lambda _: 200
    location: str = ""
    release: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hook"

    def values(self) -> list[Any]:
        return [one.value for one in self.got]

    def events(self) -> list[tuple[str, str, str]]:
        """State, before and now of all events, each once, in their order."""
        found = {one["id"]: one for value in self.values() for one in value["events"]}
        return [
            (f"{one['check']}[{one['device']}] {one['place']}", one["before"], one["now"]) for one in found.values()
        ]


def _state(event: Mapping[str, str]) -> str:
    return f"{event['check']}[{event['device']}] {event['place']}"


@contextmanager
def web(port: int = 0, tls: tuple[Path, Path] | None = None) -> Iterator[Web]:
    """Run a server for the length of a block."""
    here = Web()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            got = Got(self.path, dict(self.headers), data)
            status = here.answer(got)
            here.got.append(got)
            if status == 0:  # accepted, without an answer
                here.release.wait(60)
                return
            self.send_response(status)
            if here.location:
                self.send_header("Location", here.location)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST  # noqa: N815 (the name the library calls)

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    if tls is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*tls)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    here.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
