"""NIC tools for what a unit runs: while `systemctl` waits for the unit, the node's own line is busy with `systemctl`.

So the unit gets commands of its own, on a line of its own.
"""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from netkit.lab.entry.wire import HungUpError, WireCall
from netkit.lab.node import Node
from netkit.lab.personality import Call

HOME = "/run/netkit/unit"
SOCKET = f"{HOME}/node.sock"
PROGRAMS = f"{HOME}/bin"
PATH = f"{PROGRAMS}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWN_CLIENT = "/run/netkit/bin/.client"
OWN_SOCKET = "/run/netkit/node.sock"
Answer = Callable[[Call], int]


@contextmanager
def answering(node: Node, programs: Sequence[str], answer: Answer) -> Iterator[None]:
    """Answer programs called by what runs meanwhile."""
    _furnish(node, programs)
    path = node.file(SOCKET)
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen(16)
        thread = threading.Thread(target=_serve, args=(listener, node, answer), daemon=True)
        thread.start()
        try:
            yield
        finally:
            # Closing alone would not wake the thread up.
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def _furnish(node: Node, programs: Sequence[str]) -> None:
    folder = node.file(PROGRAMS)
    if folder.is_dir():
        return
    folder.mkdir(parents=True)
    client = folder / ".client"
    client.write_text(node.file(OWN_CLIENT).read_text(encoding="utf-8").replace(OWN_SOCKET, SOCKET), encoding="utf-8")
    client.chmod(0o755)
    for program in programs:
        (folder / program).symlink_to(".client")


def _serve(listener: socket.socket, node: Node, answer: Answer) -> None:
    while True:
        try:
            line, _ = listener.accept()
        except OSError:
            return
        with line:
            try:
                call = WireCall(line, node.file("/"))
                call.end(answer(call))
            except HungUpError:
                continue
