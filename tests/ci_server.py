"""A stand-in for GitLab: the notes of one merge request, paginated, and written over HTTP."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

API = "/api/v4"
NOTES = f"{API}/projects/7/merge_requests/3/notes"
TOKEN = "token"  # noqa: S105 (nobody's)
BOT = 42
PAGE = 2
Note = dict[str, Any]


class _Handler(BaseHTTPRequestHandler):
    server: "Gitlab"

    def do_GET(self) -> None:
        place = urlsplit(self.path)
        if place.path == f"{API}/user":
            self._answer({"id": BOT})
            return
        assert place.path == NOTES
        query = parse_qs(place.query)
        assert query["sort"] == ["asc"]
        first = PAGE * (int(query["page"][0]) - 1)
        following = f"{first // PAGE + 2}" if first + PAGE < len(self.server.notes) else ""
        self._answer(self.server.notes[first : first + PAGE], {"X-Next-Page": following})

    def do_POST(self) -> None:
        assert self.path == NOTES
        self._write({"id": 100 + len(self.server.notes), "author": {"id": BOT}}, "POST")

    def do_PUT(self) -> None:
        (note,) = [one for one in self.server.notes if self.path == f"{NOTES}/{one['id']}"]
        self._write(note, f"PUT {note['id']}")

    def _write(self, note: Note, what: str) -> None:
        fields = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert list(fields) == ["body"]
        if self._is_known():
            self.server.notes += [] if note in self.server.notes else [note]
            self.server.asked.append(what)
            note["body"] = fields["body"]
        self._answer(note)

    def _is_known(self) -> bool:
        return self.headers["PRIVATE-TOKEN"] == TOKEN

    def _answer(self, document: object, headers: Mapping[str, str] = {}) -> None:
        is_known = self._is_known()
        self.send_response(200 if is_known else 401)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(json.dumps(document if is_known else {"message": "401 Unauthorized"}).encode())

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Gitlab(ThreadingHTTPServer):
    """The server, and the requests that write."""

    def __init__(self, notes: tuple[Note, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.notes = [dict(note) for note in notes]
        self.asked: list[str] = []
        self.api = f"http://127.0.0.1:{self.server_port}{API}"


@contextmanager
def gitlab(*notes: Note) -> Iterator[Gitlab]:
    """A server that has these notes."""
    with Gitlab(notes) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
