"""SNMP: rows as text, table walks, and a connection to an agent through pysnmp.

No `repr` and no error text holds a secret.
"""

import asyncio
import importlib
import re
import socket
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from netkit.platforms.snmp import AuthProtocol, Community, Credential, PrivProtocol

AUTH_PROTOCOLS: Mapping[AuthProtocol, str] = {
    "sha1": "USM_AUTH_HMAC96_SHA",
    "sha224": "USM_AUTH_HMAC128_SHA224",
    "sha256": "USM_AUTH_HMAC192_SHA256",
    "sha384": "USM_AUTH_HMAC256_SHA384",
    "sha512": "USM_AUTH_HMAC384_SHA512",
}
"""Name in access.yaml → name in pysnmp."""
PRIV_PROTOCOLS: Mapping[PrivProtocol, str] = {"aes128": "USM_PRIV_CFB128_AES", "aes256": "USM_PRIV_CFB256_AES"}
"""AES-256 keys are extended the way Cisco does and net-snmp does by default, not by the Blumenthal draft."""

Oid = tuple[int, ...]
Value = int | bytes | Oid
Table = Mapping[int, Mapping[Oid, Value]]
"""Column → index → value."""
LARGEST_ARC = 2**32 - 1
ARCS = r"\d{1,10}(?:\.\d{1,10}){0,127}"
ROW = re.compile(rf"({ARCS}) ([isxo]) (.*)", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}", re.ASCII)
HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)


def oid(text: str) -> Oid:
    """Parse dotted arcs, which must be well-formed."""
    return tuple(map(int, text.split(".")))


def dotted(name: Oid) -> str:
    return ".".join(map(str, name))


def format_row(name: Oid, value: Value) -> str:
    """Format a value as `1.2.3 TYPE VALUE`: i(nteger), o(id), s(tring), or x for octets in hexadecimal."""
    if isinstance(value, int):
        return f"{dotted(name)} i {value}"
    if isinstance(value, tuple):
        return f"{dotted(name)} o {dotted(value)}"
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    is_text = text and text.isprintable() and text == text.strip()
    return f"{dotted(name)} s {text}" if is_text else f"{dotted(name)} x {value.hex()}"


def table(text: str) -> Table:
    """Parse rows as `format_row` writes them; malformed ones are ignored."""
    found: dict[int, dict[Oid, Value]] = {}
    for row in text.split("\n"):
        matched = ROW.fullmatch(row)
        name = _parsed_oid(matched[1]) if matched else None
        value = _parsed_value(matched[2], matched[3]) if matched else None
        if name is not None and value is not None and len(name) > 1:
            found.setdefault(name[0], {})[name[1:]] = value
    return found


def _parsed_value(kind: str, text: str) -> Value | None:
    if kind == "s":
        return text.encode("utf-8", "replace")
    if kind == "i":
        return int(text) if NUMBER.fullmatch(text) else None
    if kind == "x":
        return bytes.fromhex(text) if HEX.fullmatch(text) else None
    return _parsed_oid(text) if re.fullmatch(ARCS, text, re.ASCII) else None


def _parsed_oid(text: str) -> Oid | None:
    found = oid(text)
    return found if max(found) <= LARGEST_ARC else None


def number(rows: Table, column: int, index: Oid) -> int | None:
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, int) else None


def octets(rows: Table, column: int, index: Oid) -> bytes:
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, bytes) else b""


def words(rows: Table, column: int, index: Oid) -> str:
    """An octet string as text; empty if it is missing or unprintable."""
    text = octets(rows, column, index).decode("utf-8", "replace").strip().strip("\0")
    return text if text.isprintable() else ""


def mac(value: bytes) -> str:
    """Format six octets as aa:bb:cc:dd:ee:ff; anything else gives an empty text."""
    return ":".join(f"{byte:02x}" for byte in value) if len(value) == 6 else ""


MOST_VALUES = 200_000
"""More than any table of a switch holds; stops the walk of an agent that never ends."""
VALUES_AT_ONCE = 60
"""One or two packets, so that little is lost when one is dropped."""
Answer = Iterable[tuple[Oid, Value | None]]
"""OIDs and values in the order of the response; None for noSuchObject and endOfMibView."""


class WalkError(Exception):
    """The agent's responses cannot belong to a walk."""


@dataclass(frozen=True, slots=True)
class Walk:
    """The state of a GETBULK walk over some columns of a table."""

    root: Oid
    at: Mapping[int, Oid]
    """Unfinished column → the last OID received in it."""
    found: Mapping[Oid, Value] = field(default_factory=dict)
    """OID below the root → value."""

    @classmethod
    def of(cls, root: Oid, columns: Sequence[int]) -> "Walk":
        return cls(root, {column: (*root, column) for column in columns})

    @property
    def is_over(self) -> bool:
        return not self.at

    @property
    def repetitions(self) -> int:
        """max-repetitions of the next request."""
        return max(1, VALUES_AT_ONCE // max(1, len(self.at)))

    def after(self, answer: Answer) -> "Walk":
        """The walk after a response, which lists one value of each requested column in turn."""
        columns = tuple(self.at)
        at, found, is_empty = dict(self.at), dict(self.found), True
        for position, (name, value) in enumerate(answer):
            is_empty = False
            column = columns[position % len(columns)]
            if column not in at:
                continue
            if value is None or name[: len(self.root) + 1] != (*self.root, column):
                del at[column]
                continue
            if name <= at[column]:
                raise WalkError(f"the walk loops at {dotted(name)}")
            at[column] = name
            found[name[len(self.root) :]] = value
        if is_empty:
            raise WalkError("the response holds no value")
        if len(found) > MOST_VALUES:
            raise WalkError(f"the table has more than {MOST_VALUES} values")
        return Walk(self.root, at, found)


COMMAND = re.compile(rf"walk (\S+) ({ARCS}) (\d{{1,5}}(?:,\d{{1,5}})*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class SnmpQuery:
    """Columns of a table."""

    name: str
    root: Oid
    columns: tuple[int, ...]

    @property
    def command(self) -> str:
        """The query as text, as `parse_command` reads it."""
        return f"walk {self.name} {dotted(self.root)} {','.join(map(str, self.columns))}"


def parse_command(command: str) -> SnmpQuery | None:
    found = COMMAND.fullmatch(command)
    return SnmpQuery(found[1], oid(found[2]), tuple(map(int, found[3].split(",")))) if found else None


Result = TypeVar("Result")
TRIES = 3
SHORTEST_SECRET = 8
UPTIME: Oid = (1, 3, 6, 1, 2, 1, 1, 3, 0)
UNKNOWN_USER = "netkit-is-anybody-there"
REASONS = {
    "UnknownUserName": "unknown user",
    "WrongDigest": "the authentication secret or protocol of the user is wrong",
    "AuthenticationFailure": "the authentication secret or protocol of the user is wrong",
    "AuthenticationError": "the authentication secret or protocol of the user is wrong",
    "DecryptionError": "the privacy secret or protocol of the user is wrong",
    "UnsupportedSecurityLevel": "the user is configured for another security level: it needs more secrets, or fewer",
    "NotInTimeWindow": "the engine's boot counter went back; two agents may use the same engine ID",
    "RequestTimedOut": "no answer",
    "authorizationError": "the user may not read at this security level: check which secrets it needs",
    "noAccess": "the user may not read this",
}
TIMEOUT = "RequestTimedOut"
ENDED = "the connection was closed"
ENGINE_LOCK = threading.Lock()
"""A new engine loads its MIBs into modules that all engines share."""


class SnmpError(Exception):
    """A request got no usable response; the text gives the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(REASONS.get(reason, reason))
        self.is_timeout = reason == TIMEOUT


@dataclass(frozen=True, slots=True)
class SnmpTarget:
    """Address of an agent, and the time limit of one request."""

    host: str
    port: int = 161
    patience_s: float = 30.0


class SnmpConnection:
    """A connection to an agent; it has its own event loop and may be closed from any thread."""

    def __init__(self, target: SnmpTarget) -> None:
        self._target = target
        self._api: Any = importlib.import_module("pysnmp.hlapi.v3arch.asyncio")
        self._library_error: type[Exception] = importlib.import_module("pysnmp.error").PySnmpError
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._engine: Any = None
        self._udp: Any = None
        self._auth: Any = None
        self._lock = threading.Lock()
        self._is_ended = False

    def begin(self, credential: Credential) -> None:
        """Test that the agent accepts a credential, and use it from now on; raises SnmpError."""
        self._run(self._begin(credential))

    def table(self, root: Oid, columns: Sequence[int]) -> dict[Oid, Value]:
        """Walk columns of a table; raises SnmpError or WalkError."""
        return self._run(self._table(root, columns))

    def close(self) -> None:
        """Cancel the request in progress, then release engine, socket and loop."""
        self._is_ended = True
        task = self._task
        if task is not None:
            with suppress(RuntimeError):  # the loop is already closed
                self._loop.call_soon_threadsafe(task.cancel)
        with self._lock:
            if not self._loop.is_closed():
                if self._engine is not None:
                    self._engine.close_dispatcher()
                self._loop.run_until_complete(asyncio.sleep(0))
                self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        with self._lock:
            if self._loop.is_closed():
                work.close()
                raise SnmpError(ENDED)
            task: asyncio.Task[Result] = self._loop.create_task(work)
            self._task = task
            if self._is_ended:  # close() ran before the task could be seen
                task.cancel()
            try:
                return self._loop.run_until_complete(task)
            except asyncio.CancelledError:
                raise SnmpError(ENDED) from None
            except self._library_error as error:  # its text may contain a secret
                raise SnmpError(f"pysnmp fails with {type(error).__name__}") from None
            finally:
                self._task = None

    async def _begin(self, credential: Credential) -> None:
        if self._engine is None:
            with ENGINE_LOCK:
                self._engine = self._api.SnmpEngine()
            self._udp = await self._udp_target()
        self._auth = self._auth_data(credential)
        try:
            await self._get_uptime(self._auth)
        except SnmpError as timeout:
            if not timeout.is_timeout or isinstance(credential, Community) or not credential.priv:
                raise
            # net-snmp drops what it cannot decrypt, but rejects an unknown user: if it does, the agent is reachable
            try:
                await self._get_uptime(self._api.UsmUserData(UNKNOWN_USER))
            except SnmpError as error:
                if not error.is_timeout:
                    raise SnmpError("DecryptionError") from timeout
            raise

    async def _udp_target(self) -> Any:
        host, port = self._target.host, self._target.port
        try:
            addresses = await self._loop.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
        except OSError as error:
            raise SnmpError(f"{host} has no address: {error.strerror}") from None
        is_ipv6 = addresses[0][0] == socket.AF_INET6
        kind = self._api.Udp6TransportTarget if is_ipv6 else self._api.UdpTransportTarget
        timeout_s = max(1, round(self._target.patience_s / TRIES))
        return await kind.create((host, port), timeout=timeout_s, retries=TRIES - 1)

    def _auth_data(self, credential: Credential) -> Any:
        if isinstance(credential, Community):
            return self._api.CommunityData(credential.word, mpModel=1)
        if any(0 < len(secret) < SHORTEST_SECRET for secret in (credential.auth, credential.priv)):
            raise SnmpError(f"its secrets need at least {SHORTEST_SECRET} characters")
        if credential.priv and not credential.auth:
            raise SnmpError("privacy needs authentication too: set its secret")
        config: Any = importlib.import_module("pysnmp.entity.config")
        options: dict[str, Any] = {}
        if credential.auth:
            protocol = getattr(config, AUTH_PROTOCOLS[credential.auth_protocol])
            options |= {"authKey": credential.auth, "authProtocol": protocol}
        if credential.priv:
            protocol = getattr(config, PRIV_PROTOCOLS[credential.priv_protocol])
            options |= {"privKey": credential.priv, "privProtocol": protocol}
        return self._api.UsmUserData(credential.name, **options)

    async def _get_uptime(self, auth: Any) -> None:
        binding = self._variable(UPTIME)
        self._values(
            await self._api.get_cmd(self._engine, auth, self._udp, self._api.ContextData(), binding, lookupMib=False)
        )

    async def _table(self, root: Oid, columns: Sequence[int]) -> dict[Oid, Value]:
        walk, most = Walk.of(root, columns), 0
        while not walk.is_over:
            repetitions = min(walk.repetitions, most or walk.repetitions)
            bindings = (self._variable(name) for name in walk.at.values())
            context = self._api.ContextData()
            response = await self._api.bulk_cmd(
                self._engine, self._auth, self._udp, context, 0, repetitions, *bindings, lookupMib=False
            )
            try:
                walk = walk.after(self._values(response))
            except SnmpError as error:
                if str(error) != "tooBig" or repetitions == 1:
                    raise
                most = repetitions // 2
        return dict(sorted(walk.found.items()))

    def _variable(self, name: Oid) -> Any:
        return self._api.ObjectType(self._api.ObjectIdentity(name))

    def _values(self, response: Any) -> list[tuple[Oid, Value | None]]:
        failure, status, _, bindings = response
        if failure:
            raise SnmpError(type(failure).__name__)
        if status:
            raise SnmpError(str(status.prettyPrint()))
        return [(tuple(name), _plain_value(value)) for name, value in bindings]


def _plain_value(value: Any) -> Value | None:
    """Convert a pysnmp value; noSuchObject, endOfMibView and the like, which derive from Null, become None."""
    univ: Any = importlib.import_module("pyasn1.type.univ")
    if isinstance(value, univ.Null):
        return None
    if isinstance(value, univ.Integer):
        return int(value)
    if isinstance(value, univ.ObjectIdentifier):
        return tuple(value)
    return bytes(value) if isinstance(value, univ.OctetString) else None
