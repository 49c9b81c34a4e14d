"""A session with snmpd: registers the subtrees, then answers from them until snmpd goes away."""

import socket
import struct
from collections.abc import Callable, Iterator

from netkit.lab.agents.snmp import agentx
from netkit.lab.agents.snmp.agentx import Binding, Header, Missing, Pdu, Range
from netkit.lab.agents.snmp.tree import Tree

TIMEOUT_S = 60
"""How long snmpd waits for an answer: machines are shared."""
MOST_BINDINGS = 2000


class Session:
    """One connection."""

    def __init__(self, connection: socket.socket, tree: Tree, log: Callable[[str], None]) -> None:
        self._connection = connection
        self._tree = tree
        self._log = log
        self._number = 0

    def open(self) -> None:
        """Open the session and register every subtree; raises OSError when snmpd does not want it."""
        head, _ = self._ask(Pdu.OPEN, agentx.opening("lab hardware", TIMEOUT_S))
        self._number = head.session
        for mib in self._tree.mibs:
            self._ask(Pdu.REGISTER, agentx.registration(mib.root, TIMEOUT_S))

    def serve(self) -> None:
        """Answer until the connection ends."""
        while (received := self._receive()) is not None:
            head, payload = received
            if head.pdu == Pdu.CLOSE:
                return
            if head.pdu not in {Pdu.RESPONSE, Pdu.CLEANUP_SET}:
                answer = self._answered(head, payload)
                whole = agentx.message(
                    Pdu.RESPONSE, answer, session=head.session, transaction=head.transaction, packet=head.packet
                )
                self._connection.sendall(whole)

    def _answered(self, head: Header, payload: bytes) -> bytes:
        try:
            return answer(self._tree, head, payload)
        except struct.error:
            return agentx.response(error=agentx.PARSE_ERROR)
        except Exception as error:  # what could not be read now may be there later; the session must live
            self._log(f"snmp: {type(error).__name__}: {error}")
            return agentx.response(error=agentx.GENERAL_ERROR, index=1)

    def _ask(self, pdu: Pdu, payload: bytes) -> tuple[Header, bytes]:
        self._connection.sendall(agentx.message(pdu, payload, session=self._number))
        received = self._receive()
        if received is None or agentx.response_error(received[1]):
            raise OSError(f"snmpd did not accept {pdu.name}")
        return received

    def _receive(self) -> tuple[Header, bytes] | None:
        start = self._exactly(agentx.HEADER.size)
        if start is None:
            return None
        head = agentx.header(start)
        payload = self._exactly(head.length)
        return None if payload is None else (head, payload)

    def _exactly(self, size: int) -> bytes | None:
        parts: list[bytes] = []
        while size:
            part = self._connection.recv(size)
            if not part:
                return None
            parts.append(part)
            size -= len(part)
        return b"".join(parts)


def answer(tree: Tree, head: Header, payload: bytes) -> bytes:
    """Return the answer to one question; nothing can be set."""
    if head.flags & agentx.NON_DEFAULT_CONTEXT:
        payload = payload[agentx.context_length(payload) :]
    match head.pdu:
        case Pdu.GET:
            return agentx.response(_got(tree, asked) for asked in agentx.ranges(payload))
        case Pdu.GET_NEXT:
            return agentx.response(_following(tree, asked) for asked in agentx.ranges(payload))
        case Pdu.GET_BULK:
            once, times = agentx.bulk_counts(payload)
            return agentx.response(_bulk(tree, list(agentx.ranges(payload[4:])), once, times))
        case _:
            return agentx.response(error=agentx.NOT_WRITABLE, index=1)


def _got(tree: Tree, asked: Range) -> Binding:
    return tree.get(asked.start) or Missing(asked.start, agentx.NO_SUCH_OBJECT)


def _following(tree: Tree, asked: Range) -> Binding:
    found = tree.next(asked.start, is_included=asked.is_included, end=asked.end)
    return found or Missing(asked.start, agentx.END_OF_MIB_VIEW)


def _bulk(tree: Tree, asked: list[Range], once: int, times: int) -> Iterator[Binding]:
    """Yield the answers to a GetBulk: the others in turn, each going on where it was."""
    for one in asked[:once]:
        yield _following(tree, one)
    others = asked[once:]
    for _ in range(min(times, MOST_BINDINGS // max(1, len(others)))):
        found = [_following(tree, one) for one in others]
        yield from found
        if all(isinstance(one, Missing) for one in found):
            return
        others = [Range(one.oid, False, before.end) for one, before in zip(found, others, strict=True)]
