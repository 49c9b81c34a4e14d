"""A webhook receiver on loopback that records messages, and sometimes refuses one or fails after accepting it."""

import json
import random
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Place = tuple[str, str, str]


@dataclass
class Hook:
    """The messages received, in order."""

    url: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list)
    refused: int = 0

    @property
    def repeats(self) -> int:
        """The number of messages received again under the same ID."""
        return sum(self._times.values()) - len(self._times)

    @property
    def _times(self) -> Counter[str]:
        return Counter(message["id"] for message in self.messages)

    def events(self) -> list[dict[str, Any]]:
        """The events of all messages, without repeated ones."""
        first = {message["id"]: message for message in self.messages}
        return [event for message in first.values() for event in message["events"]]

    def notified(self) -> dict[Place, list[str]]:
        """The reported verdicts of each state, in order."""
        found: dict[Place, list[str]] = {}
        for event in self.events():
            found.setdefault((event["check"], event["device"], event["place"]), []).append(event["now"])
        return found


@contextmanager
def hook(chance: random.Random, trouble: Sequence[float]) -> Iterator[Hook]:
    """Run a receiver that sometimes refuses a message, or accepts one and answers with an error."""
    here, lock = Hook(), threading.Lock()
    refuses, loses = trouble

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            with lock:
                drawn = chance.random()
                if drawn < refuses:
                    here.refused += 1
                else:
                    here.messages.append(json.loads(data))
            self.send_response(503 if drawn < refuses + loses else 200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here.url = f"http://127.0.0.1:{server.server_address[1]}/"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield here
    finally:
        server.shutdown()
        server.server_close()
