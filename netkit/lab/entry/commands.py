"""Commands typed on the nodes: each arrives over a socket in frames, and the personality answers it."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path, PurePosixPath

from netkit.lab.live import LiveNode
from netkit.lab.personality import Personality

HEAD_BYTES = 5
LONGEST_BYTES = 64 << 20


class HungUpError(Exception):
    """The peer closed the connection."""


def send(line: socket.socket, kind: str, text: str) -> None:
    raw = text.encode("utf-8", "surrogateescape")
    try:
        line.sendall(kind.encode() + len(raw).to_bytes(4, "big") + raw)
    except OSError:
        raise HungUpError from None


def receive(line: socket.socket) -> tuple[str, str]:
    """Receive one frame: its kind and its text."""
    head = _exactly(line, HEAD_BYTES)
    size = int.from_bytes(head[1:], "big")
    if size > LONGEST_BYTES:
        raise HungUpError
    return head[:1].decode("latin-1"), _exactly(line, size).decode("utf-8", "surrogateescape")


def _exactly(line: socket.socket, size: int) -> bytes:
    found = bytearray()
    while len(found) < size:
        try:
            part = line.recv(size - len(found))
        except OSError:
            raise HungUpError from None
        if not part:
            raise HungUpError
        found += part
    return bytes(found)


class WireCall:
    """A command received over a socket; `root` is the node's file system as this process sees it."""

    def __init__(self, line: socket.socket, root: Path) -> None:
        kind, text = receive(line)
        words = text.split("\0")
        if kind != "C" or len(words) < 3:
            raise HungUpError
        self.folder, self.user, self.program, *arguments = words
        self.arguments = tuple(arguments)
        self.line = line
        self._root = root

    def out(self, text: str) -> None:
        send(self.line, "O", text)

    def err(self, text: str) -> None:
        """Print to standard error."""
        send(self.line, "E", text)

    def ask(self, prompt: str) -> str:
        """Print a prompt and return the line typed."""
        send(self.line, "L", prompt)
        return receive(self.line)[1].removesuffix("\n")

    def stdin(self) -> str:
        """Return all of standard input."""
        send(self.line, "A", "")
        return receive(self.line)[1]

    def file(self, path: str) -> Path:
        """Return the path on this side of a file named on the node."""
        return self._root / str(PurePosixPath(self.folder) / path).lstrip("/")

    def end(self, exit_code: int) -> None:
        send(self.line, "X", str(exit_code))


SOCKET = "run/netkit/node.sock"
Answer = Callable[[LiveNode, Personality, WireCall], int]


def serve(node: LiveNode, personality: Personality, answer: Answer) -> None:
    """Answer commands on a node's socket in background threads."""
    path = node.holder.root / SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)

    def answer_one(line: socket.socket) -> None:
        with line, suppress(HungUpError):
            call = WireCall(line, Path(node.holder.root))
            call.end(answer(node, personality, call))

    def accept() -> None:
        while True:
            line, _ = listener.accept()
            threading.Thread(target=answer_one, args=(line,), daemon=True).start()

    threading.Thread(target=accept, name=f"commands-{node.name}", daemon=True).start()
