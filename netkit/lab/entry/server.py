"""Takes the commands typed on the nodes, each on a thread of its own, and has the node's personality answer them."""

import socket
import threading
from collections.abc import Callable
from pathlib import Path

from netkit.lab.entry.wire import HungUpError, WireCall
from netkit.lab.live import LiveNode
from netkit.lab.personality import Personality

SOCKET = "run/netkit/node.sock"
Answer = Callable[[LiveNode, Personality, WireCall], int]


def serve(node: LiveNode, personality: Personality, answer: Answer) -> None:
    """Listen on a node's socket for as long as the lab runs."""
    path = node.holder.root / SOCKET
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(128)
    threading.Thread(
        target=_accept, args=(listener, node, personality, answer), name=f"commands-{node.name}", daemon=True
    ).start()


def _accept(listener: socket.socket, node: LiveNode, personality: Personality, answer: Answer) -> None:
    while True:
        line, _ = listener.accept()
        threading.Thread(target=_answer, args=(line, node, personality, answer), daemon=True).start()


def _answer(line: socket.socket, node: LiveNode, personality: Personality, answer: Answer) -> None:
    with line:
        try:
            call = WireCall(line, Path(node.holder.root))
            call.end(answer(node, personality, call))
        except HungUpError:
            return
