"""The SNMP agent of a switch: Debian's snmpd in the node, and an AgentX (RFC 2741) session with it."""

import os
import re
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol

from netkit.design.fabric import Switch
from netkit.lab.agents.lldp_daemon import LldpState, description
from netkit.lab.agents.snmp_mibs import mibs
from netkit.lab.agents.snmp_objects import MibRow, MibTree, Oid, SmiType, SnmpSnapshot, snapshot
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.state import SnmpState, SwitchState

HEADER = struct.Struct("!BBBxIIII")
VERSION = 1
NETWORK_BYTE_ORDER = 0x10
NON_DEFAULT_CONTEXT = 0x08
NO_SUCH_OBJECT, END_OF_MIB_VIEW = 128, 130
NO_ERROR, GENERAL_ERROR, NOT_WRITABLE, PARSE_ERROR = 0, 5, 17, 266
LARGEST_BYTES = 2**20


class Pdu(IntEnum):
    """The AgentX PDU types used here."""

    OPEN = 1
    CLOSE = 2
    REGISTER = 3
    GET = 5
    GET_NEXT = 6
    GET_BULK = 7
    TEST_SET = 8
    CLEANUP_SET = 11
    RESPONSE = 18


@dataclass(frozen=True, slots=True)
class Header:
    """The header of every AgentX PDU."""

    pdu: int
    flags: int
    session: int
    transaction: int
    packet: int
    length: int


@dataclass(frozen=True, slots=True)
class SearchRange:
    """A start OID, whether the start itself matches, and the OID to stop before."""

    start: Oid
    is_included: bool
    end: Oid


@dataclass(frozen=True, slots=True)
class Missing:
    """A varbind without a value: noSuchObject or endOfMibView."""

    oid: Oid
    tag: int


Varbind = MibRow | Missing


def message(pdu: Pdu, payload: bytes, *, session: int = 0, transaction: int = 0, packet: int = 0) -> bytes:
    return HEADER.pack(VERSION, pdu, NETWORK_BYTE_ORDER, session, transaction, packet, len(payload)) + payload


def header(data: bytes) -> Header:
    """Parse the header; raise ValueError if it is not an AgentX header this session accepts."""
    version, pdu, flags, session, transaction, packet, length = HEADER.unpack(data)
    if version != VERSION or not flags & NETWORK_BYTE_ORDER or length > LARGEST_BYTES:
        raise ValueError("not an AgentX message in network byte order")
    return Header(pdu, flags, session, transaction, packet, length)


def opening(description: str, timeout_s: int) -> bytes:
    """Build the payload of an Open PDU."""
    return struct.pack("!Bxxx", timeout_s) + _oid(()) + _octets(description.encode())


def registration(subtree: Oid, timeout_s: int, priority: int = 127) -> bytes:
    """Build the payload of a Register PDU."""
    return struct.pack("!BBBx", timeout_s, priority, 0) + _oid(subtree)


def response(varbinds: Iterable[Varbind] = (), error: int = NO_ERROR, index: int = 0) -> bytes:
    """Build the payload of a Response PDU."""
    return struct.pack("!IHH", 0, error, index) + b"".join(map(_varbind, varbinds))


def response_error(payload: bytes) -> int:
    """The error code of a Response; 0 is success."""
    return int(struct.unpack_from("!H", payload, 4)[0])


def bulk_counts(payload: bytes) -> tuple[int, int]:
    """Non-repeaters and max-repetitions of a GetBulk."""
    non_repeaters, repetitions = struct.unpack_from("!HH", payload)
    return non_repeaters, repetitions


def ranges(payload: bytes) -> Iterator[SearchRange]:
    """Yield the search ranges of a Get or GetNext, or of a GetBulk after its counts."""
    at = 0
    while at < len(payload):
        start, is_included, at = _read_oid(payload, at)
        end, _, at = _read_oid(payload, at)
        yield SearchRange(start, is_included, end)


def context_length(payload: bytes) -> int:
    """The length in bytes of the context string before the ranges."""
    return 4 + -(-int(struct.unpack_from("!I", payload)[0]) // 4) * 4


def _varbind(varbind: Varbind) -> bytes:
    if isinstance(varbind, Missing):
        return struct.pack("!Hxx", varbind.tag) + _oid(varbind.oid)
    return struct.pack("!Hxx", varbind.kind) + _oid(varbind.oid) + _value(varbind)


def _value(row: MibRow) -> bytes:
    if isinstance(row.value, bytes):
        return _octets(row.value)
    if isinstance(row.value, tuple):
        return _oid(row.value)
    if row.kind == SmiType.COUNTER64:
        return struct.pack("!Q", row.value)
    return struct.pack("!i" if row.kind == SmiType.INTEGER else "!I", row.value)


def _oid(oid: Oid) -> bytes:
    return struct.pack(f"!BBBx{len(oid)}I", len(oid), 0, 0, *oid)


def _octets(value: bytes) -> bytes:
    return struct.pack("!I", len(value)) + value + bytes(-len(value) % 4)


def _read_oid(payload: bytes, at: int) -> tuple[Oid, bool, int]:
    """Decode an OID; a prefix p means 1.3.6.1.p."""
    count, prefix, is_included = struct.unpack_from("!BBBx", payload, at)
    oid = struct.unpack_from(f"!{count}I", payload, at + 4)
    return ((1, 3, 6, 1, prefix) if prefix else ()) + oid, bool(is_included), at + 4 + 4 * count


TIMEOUT_S = 60
"""How long snmpd waits for an answer; generous, since labs run on busy machines."""
MOST_VARBINDS = 2000


class AgentxSession:
    """A subagent session with snmpd over one connection."""

    def __init__(self, connection: socket.socket, tree: MibTree, log: Callable[[str], None]) -> None:
        self._connection = connection
        self._tree = tree
        self._log = log
        self._number = 0

    def open(self) -> None:
        """Open the session and register every subtree; raise OSError if snmpd refuses."""
        head, _ = self._request(Pdu.OPEN, opening("lab hardware", TIMEOUT_S))
        self._number = head.session
        for mib in self._tree.mibs:
            self._request(Pdu.REGISTER, registration(mib.root, TIMEOUT_S))

    def serve(self) -> None:
        """Answer requests until the connection closes."""
        while (received := self._receive()) is not None:
            head, payload = received
            if head.pdu == Pdu.CLOSE:
                return
            if head.pdu not in {Pdu.RESPONSE, Pdu.CLEANUP_SET}:
                reply = self._reply(head, payload)
                self._connection.sendall(
                    message(Pdu.RESPONSE, reply, session=head.session, transaction=head.transaction, packet=head.packet)
                )

    def _reply(self, head: Header, payload: bytes) -> bytes:
        try:
            return answer(self._tree, head, payload)
        except struct.error:
            return response(error=PARSE_ERROR)
        except Exception as error:  # a failed read may succeed later; the session must survive it
            self._log(f"snmp: {type(error).__name__}: {error}")
            return response(error=GENERAL_ERROR, index=1)

    def _request(self, pdu: Pdu, payload: bytes) -> tuple[Header, bytes]:
        self._connection.sendall(message(pdu, payload, session=self._number))
        received = self._receive()
        if received is None or response_error(received[1]):
            raise OSError(f"snmpd did not accept {pdu.name}")
        return received

    def _receive(self) -> tuple[Header, bytes] | None:
        start = self._exactly(HEADER.size)
        if start is None:
            return None
        head = header(start)
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


def answer(tree: MibTree, head: Header, payload: bytes) -> bytes:
    """Build the response to one request; every set is refused."""
    if head.flags & NON_DEFAULT_CONTEXT:
        payload = payload[context_length(payload) :]
    match head.pdu:
        case Pdu.GET:
            oids = (search.start for search in ranges(payload))
            return response(tree.get(oid) or Missing(oid, NO_SUCH_OBJECT) for oid in oids)
        case Pdu.GET_NEXT:
            return response(_next(tree, search) for search in ranges(payload))
        case Pdu.GET_BULK:
            non_repeaters, repetitions = bulk_counts(payload)
            return response(_bulk(tree, list(ranges(payload[4:])), non_repeaters, repetitions))
        case _:
            return response(error=NOT_WRITABLE, index=1)


def _next(tree: MibTree, search: SearchRange) -> Varbind:
    row = tree.next(search.start, is_included=search.is_included, end=search.end)
    return row or Missing(search.start, END_OF_MIB_VIEW)


def _bulk(tree: MibTree, searches: list[SearchRange], non_repeaters: int, repetitions: int) -> Iterator[Varbind]:
    """Yield the varbinds for a GetBulk: the repeaters in turn, each continuing where it stopped."""
    for search in searches[:non_repeaters]:
        yield _next(tree, search)
    repeaters = searches[non_repeaters:]
    for _ in range(min(repetitions, MOST_VARBINDS // max(1, len(repeaters)))):
        row = [_next(tree, search) for search in repeaters]
        yield from row
        if all(isinstance(varbind, Missing) for varbind in row):
            return
        repeaters = [SearchRange(last.oid, False, search.end) for last, search in zip(row, repeaters, strict=True)]


SHORTEST_SECRET = 8
MODULES = (
    "snmpEngine",
    "snmpMPDStats",
    "snmp_mib",
    "sysORTable",
    "system_mib",
    "target_counters",
    "usmConf",
    "usmStats",
    "usmUser",
    "vacm_conf",
    "vacm_context",
    "vacm_vars",
)
"""The modules of snmpd itself; everything else comes from the lab's subagent."""
OBJECT_IDS = {"nvue": ".1.3.6.1.4.1.40310", "eos": ".1.3.6.1.4.1.30065.1"}
LINUX_OBJECT_ID = ".1.3.6.1.4.1.8072.3.2.10"


def config(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> str:
    """snmpd.conf, without the users' secrets."""
    return "".join(f"{line}\n" for line in _lines(snmp, hostname, switch, listen, agentx))


def secrets(snmp: SnmpState, hostname: str, boots: int) -> str:
    """The persistent file of snmpd: engine ID, engine boots, and users with their secrets."""
    lines = [f"engineBoots {boots}", f"oldEngineID {engine_id(hostname)}"]
    lines += [
        f"createUser {_quoted(user.name)} SHA {_secret(user.name, user.auth_secret)}"
        f" AES {_secret(user.name, user.priv_secret)}"
        for user in snmp.users
    ]
    return "".join(f"{line}\n" for line in lines)


def engine_id(hostname: str) -> str:
    """A stable engine ID for a hostname, in net-snmp's text format."""
    return "0x80001f8804" + hostname.encode()[:27].hex()


def _lines(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> Iterator[str]:
    yield f"agentAddress udp:{listen}"
    yield f"exactEngineID {engine_id(hostname)}"
    yield "master agentx"
    yield f"agentXSocket {agentx}"
    yield "agentXTimeout 60"
    yield f"sysName {_text(hostname)}"
    yield f"sysDescr {description(switch)}"
    yield f"sysObjectID {OBJECT_IDS.get(switch.platform, LINUX_OBJECT_ID)}"
    # Always set, so that the machine's own values do not show.
    yield f"sysLocation {_text(snmp.location) or 'unknown'}"
    yield f"sysContact {_text(snmp.contact) or 'unknown'}"
    yield "sysServices 6"
    for user in snmp.users:
        yield f"rouser {_quoted(user.name)} priv"
    for community in snmp.communities:
        yield f"rocommunity {_quoted(community)}"


def _secret(user: str, secret: str) -> str:
    if len(secret) < SHORTEST_SECRET:
        raise ConfigRefusedError(f"the secrets of SNMP user {user} need at least {SHORTEST_SECRET} characters")
    return _quoted(secret)


def _quoted(word: str) -> str:
    if not word or not word.isprintable():
        raise ConfigRefusedError("an SNMP user, community or secret is empty or has unprintable characters")
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _text(value: str) -> str:
    """Put text on one line: snmpd reads a value to the end of the line."""
    return " ".join(value.split())


NAME = "snmpd"
FOLDER = "/run/netkit/snmp"
# Socket activation: LISTEN_PID must be snmpd's own pid, which only the process that executes snmpd knows.
BECOME = (
    f"export LISTEN_PID=$$ LISTEN_FDS=1 MIBS= MIBDIRS= SNMPCONFPATH={FOLDER}:{FOLDER}/private "
    f'SNMP_PERSISTENT_DIR={FOLDER}/private; exec "$@"'
)
SNMPD = ("/usr/sbin/snmpd", "-f", "-r", "-LOw", "-I", ",".join(MODULES))
START_S = 60
PAUSE_S = 0.02


class AgentNode(Node, Protocol):
    """A node that can pass file descriptors to a program."""

    def spawn(self, name: str, *command: str, fds: Sequence[int] = ()) -> None:
        """Start a long-running program; the descriptors become its 3, 4 and so on."""


class SnmpAgent:
    """The SNMP agent of one switch. It listens in the machine's network namespace; port 0 picks a free port."""

    def __init__(self, node: AgentNode, address: str, port: int, listen: Callable[[], LldpState]) -> None:
        if not isinstance(node.device, Switch):
            raise TypeError(f"{node.name} is not a switch")
        self._node, self._switch, self._address = node, node.device, address
        self._state = SwitchState(node.name)
        self._config = ""
        # To a manager that outlives a lab, the next lab's engine of the same name must look rebooted.
        self._boots = int(time.time())
        self._connection: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._tree = MibTree(mibs(self._switch.platform, self._snapshot, listen))
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self._udp.bind((address, port))
        except OSError:
            self._udp.close()
            raise
        self.port: int = self._udp.getsockname()[1]

    def apply(self, state: SwitchState) -> None:
        """Start, restart or stop snmpd to match a configuration; raise ConfigRefusedError for what snmpd rejects."""
        self._state = state
        self._tree.forget()
        config = "".join(self._files(state, boots=0).values())
        if config == self._config and (not config or self._node.is_running(NAME)):
            return
        self.end()
        if config:
            self._start(state)
        self._config = config

    def end(self) -> None:
        """Stop snmpd, so that the next state starts it again; the UDP port stays bound."""
        self._node.end(NAME)
        self._config = ""
        if self._connection is not None:
            with suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join()
        self._connection = self._thread = None

    def close(self) -> None:
        """Stop snmpd and release the UDP port."""
        self.end()
        self._udp.close()

    def _files(self, state: SwitchState, boots: int) -> dict[str, str]:
        """The configuration of snmpd by file name; empty if the switch has no SNMP."""
        if state.snmp is None or not (state.snmp.users or state.snmp.communities):
            return {}
        return {
            "snmpd.conf": config(
                state.snmp, state.hostname, self._switch, f"{self._address}:{self.port}", f"{FOLDER}/agentx"
            ),
            "private/snmpd.conf": secrets(state.snmp, state.hostname, boots),
        }

    def _start(self, state: SwitchState) -> None:
        folder = self._node.file(FOLDER)
        private = folder / "private"
        private.mkdir(parents=True, exist_ok=True)
        private.chmod(0o700)
        for name, text in self._files(state, self._boots).items():
            (folder / name).write_text(text, encoding="utf-8")
        self._boots += 1
        (folder / "agentx").unlink(missing_ok=True)
        # Discard requests that arrived while snmpd was not running.
        with suppress(BlockingIOError):
            while self._udp.recv(65535, socket.MSG_DONTWAIT):
                pass
        self._node.spawn(NAME, "/bin/sh", "-c", BECOME, "sh", *SNMPD, fds=(self._udp.fileno(),))
        self._connection = self._connect(folder)
        session = AgentxSession(self._connection, self._tree, self._node.log)
        session.open()
        self._thread = threading.Thread(target=self._serve, args=(session, self._connection), daemon=True)
        self._thread.start()

    def _connect(self, folder: Path) -> socket.socket:
        """Connect once snmpd listens. A path through a descriptor never exceeds the length limit of a socket path."""
        descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY)
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        deadline = time.monotonic() + START_S
        try:
            while True:
                try:
                    connection.connect(f"/proc/self/fd/{descriptor}/agentx")
                    return connection
                except OSError as error:
                    if time.monotonic() > deadline or not self._node.is_running(NAME):
                        connection.close()
                        what = f"{self._node.name}: snmpd did not start: {error}; is it installed? see its log"
                        raise RuntimeError(what) from error
                    time.sleep(PAUSE_S)
        finally:
            os.close(descriptor)

    def _serve(self, session: AgentxSession, connection: socket.socket) -> None:
        try:
            session.serve()
        except (OSError, ValueError, RuntimeError) as error:
            self._node.log(f"snmp: {error}")
        finally:
            connection.close()

    def _snapshot(self) -> SnmpSnapshot:
        return snapshot(self._switch, self._state, self._node.ports())
