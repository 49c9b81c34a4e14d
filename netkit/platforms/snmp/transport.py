"""By what an SNMP agent lets in. No secret is part of a text of these."""

import asyncio
import importlib
import re
import socket
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

AuthProtocol = Literal["sha1", "sha224", "sha256", "sha384", "sha512"]
PrivProtocol = Literal["aes128", "aes256"]
AUTH_PROTOCOLS: Mapping[AuthProtocol, str] = {
    "sha1": "USM_AUTH_HMAC96_SHA",
    "sha224": "USM_AUTH_HMAC128_SHA224",
    "sha256": "USM_AUTH_HMAC192_SHA256",
    "sha384": "USM_AUTH_HMAC256_SHA384",
    "sha512": "USM_AUTH_HMAC384_SHA512",
}
"""Name → what pysnmp calls it."""
PRIV_PROTOCOLS: Mapping[PrivProtocol, str] = {"aes128": "USM_PRIV_CFB128_AES", "aes256": "USM_PRIV_CFB256_AES"}
"""Keys of 256 bits are made as Cisco and net-snmp's default do; the draft of Blumenthal makes others."""


@dataclass(frozen=True, slots=True)
class Community:
    """Version 2c: a word that travels in the clear."""

    word: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class User:
    """Version 3: a user, with what it proves itself and hides its questions by; empty for neither."""

    name: str
    auth: str = field(default="", repr=False)
    auth_protocol: AuthProtocol = "sha1"
    priv: str = field(default="", repr=False)
    priv_protocol: PrivProtocol = "aes128"


Credential = Community | User


Oid = tuple[int, ...]
Value = int | bytes | Oid
Table = Mapping[int, Mapping[Oid, Value]]
"""Column → index → value."""
LARGEST_PART = 2**32 - 1
ARCS = r"\d{1,10}(?:\.\d{1,10}){0,127}"
LINE = re.compile(rf"({ARCS}) ([isxo]) (.*)", re.ASCII)
NUMBER = re.compile(r"-?\d{1,20}", re.ASCII)
HEX = re.compile(r"(?:[0-9a-f]{2})*", re.ASCII)


def oid(text: str) -> Oid:
    """Return the name that a text spells; it must be one."""
    return tuple(map(int, text.split(".")))


def spelled(name: Oid) -> str:
    """Return a name as text."""
    return ".".join(map(str, name))


def line(name: Oid, value: Value) -> str:
    """Return one value as a line."""
    return f"{spelled(name)} {_value(value)}"


def _value(value: Value) -> str:
    if isinstance(value, int):
        return f"i {value}"
    if isinstance(value, tuple):
        return f"o {spelled(value)}"
    try:
        text = value.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    return f"s {text}" if text and text.isprintable() and text == text.strip() else f"x {value.hex()}"


def table(text: str) -> Table:
    """Return what the lines say; whatever they are, nothing is raised."""
    found: dict[int, dict[Oid, Value]] = {}
    for name, value in _read(text.split("\n")):
        if len(name) > 1:
            found.setdefault(name[0], {})[name[1:]] = value
    return found


def _read(lines: Iterable[str]) -> Iterable[tuple[Oid, Value]]:
    for one in lines:
        matched = LINE.fullmatch(one)
        name = _name(matched[1]) if matched else None
        value = _parsed(matched[2], matched[3]) if matched else None
        if name is not None and value is not None:
            yield name, value


def _parsed(kind: str, text: str) -> Value | None:
    if kind == "s":
        return text.encode("utf-8", "replace")
    if kind == "i":
        return int(text) if NUMBER.fullmatch(text) else None
    if kind == "x":
        return bytes.fromhex(text) if HEX.fullmatch(text) else None
    return _name(text) if re.fullmatch(ARCS, text, re.ASCII) else None


def _name(text: str) -> Oid | None:
    found = oid(text)
    return found if max(found) <= LARGEST_PART else None


def number(rows: Table, column: int, index: Oid) -> int | None:
    """Return a number of a table; None where there is none."""
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, int) else None


def octets(rows: Table, column: int, index: Oid) -> bytes:
    """Return bytes of a table; empty where there are none."""
    value = rows.get(column, {}).get(index)
    return value if isinstance(value, bytes) else b""


def words(rows: Table, column: int, index: Oid) -> str:
    """Return text of a table; empty where there is none."""
    text = octets(rows, column, index).decode("utf-8", "replace").strip().strip("\0")
    return text if text.isprintable() else ""


def mac(value: bytes) -> str:
    """Return an Ethernet address as everybody writes it; empty when it is none."""
    return ":".join(f"{byte:02x}" for byte in value) if len(value) == 6 else ""


MOST_VALUES = 200_000
"""No table of a switch is so long; an agent that never ends is stopped."""
VALUES_AT_ONCE = 60
"""They fit into one or two packets, so that little is lost with one of them."""
Answer = Iterable[tuple[Oid, Value | None]]
"""Names and values in the order of the answer; without a value where the agent has none."""


class WalkError(Exception):
    """The agent answers what cannot be an answer."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A walk under way."""

    root: Oid
    at: Mapping[int, Oid]
    """Column that is not at its end → the last name that was seen of it."""
    found: Mapping[Oid, Value] = field(default_factory=dict)
    """Name below the root → value."""

    @classmethod
    def of(cls, root: Oid, columns: Sequence[int]) -> "Walk":
        """Begin."""
        return cls(root, {column: (*root, column) for column in columns})

    @property
    def is_over(self) -> bool:
        """Whether all columns are at their ends."""
        return not self.at

    @property
    def repetitions(self) -> int:
        """Return how many rows to ask for."""
        return max(1, VALUES_AT_ONCE // max(1, len(self.at)))

    def after(self, answer: Answer) -> "Walk":
        """Return the walk after an answer, whose values go round the columns that were asked for."""
        asked = tuple(self.at)
        at, found, is_empty = dict(self.at), dict(self.found), True
        for position, (name, value) in enumerate(answer):
            is_empty = False
            column = asked[position % len(asked)]
            if column not in at:
                continue
            if value is None or name[: len(self.root) + 1] != (*self.root, column):
                del at[column]
                continue
            if name <= at[column]:
                raise WalkError(f"it goes in circles at {spelled(name)}")
            at[column] = name
            found[name[len(self.root) :]] = value
        if is_empty:
            raise WalkError("it answers without a value")
        if len(found) > MOST_VALUES:
            raise WalkError(f"it has more than {MOST_VALUES} values")
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
        """Return it as a command."""
        return f"walk {self.name} {spelled(self.root)} {','.join(map(str, self.columns))}"


def question(command: str) -> SnmpQuery | None:
    """Return what a command asks; None when it is none of SNMP's."""
    found = COMMAND.fullmatch(command)
    return SnmpQuery(found[1], oid(found[2]), tuple(map(int, found[3].split(",")))) if found else None


Answered = TypeVar("Answered")
TRIES = 3
SHORTEST_SECRET = 8
UPTIME: Oid = (1, 3, 6, 1, 2, 1, 1, 3, 0)
STRANGER = "netkit-is-anybody-there"
REASONS = {
    "UnknownUserName": "it knows no such user",
    "WrongDigest": "the secret of the user's authentication, or its protocol, is wrong",
    "AuthenticationFailure": "the secret of the user's authentication, or its protocol, is wrong",
    "AuthenticationError": "the secret of the user's authentication, or its protocol, is wrong",
    "DecryptionError": "the secret of the user's privacy, or its protocol, is wrong",
    "UnsupportedSecurityLevel": "the user is not made for this: it needs other secrets, or fewer",
    "NotInTimeWindow": "its clock of engine boots goes back; its engine may be there twice",
    "RequestTimedOut": "no answer",
    "authorizationError": "the user may not read without better protection: see which secrets it needs",
    "noAccess": "the user may not read this",
}
SILENT = "RequestTimedOut"
ENDED = "the connection was ended"
MAKING = threading.Lock()
"""Engines load their own MIBs when they are made, into modules that all share."""


class RefusedQuestionError(Exception):
    """An agent did not answer; the text says why."""

    def __init__(self, word: str) -> None:
        super().__init__(REASONS.get(word, word))
        self.is_silence = word == SILENT


@dataclass(frozen=True, slots=True)
class SnmpTarget:
    """Where an agent listens, and how long one answer may take."""

    host: str
    port: int = 161
    patience_s: float = 30.0


class SnmpConnection:
    """A connection to an agent."""

    def __init__(self, place: SnmpTarget) -> None:
        self._place = place
        self._api: Any = importlib.import_module("pysnmp.hlapi.v3arch.asyncio")
        self._library_error: type[Exception] = importlib.import_module("pysnmp.error").PySnmpError
        self._loop = asyncio.new_event_loop()
        self._task: asyncio.Task[Any] | None = None
        self._engine: Any = None
        self._target: Any = None
        self._who: Any = None
        self._asking = threading.Lock()
        self._is_ended = False

    def begin(self, credential: Credential) -> None:
        """See whether the agent lets in; raises RefusedQuestionError when it does not."""
        self._run(self._begin(credential))

    def table(self, root: Oid, columns: Sequence[int]) -> dict[Oid, Value]:
        """Return the columns of a table, in order; raises RefusedQuestionError or WalkError."""
        return self._run(self._table(root, columns))

    def close(self) -> None:
        """End what is being asked, from any thread; then engine, socket and loop."""
        self._is_ended = True
        task = self._task
        if task is not None:
            with suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(task.cancel)
        with self._asking:
            if not self._loop.is_closed():
                self._end()

    def _end(self) -> None:
        if self._engine is not None:
            self._engine.close_dispatcher()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, Answered]) -> Answered:
        with self._asking:
            if self._loop.is_closed():
                work.close()
                raise RefusedQuestionError(ENDED)
            task: asyncio.Task[Answered] = self._loop.create_task(work)
            self._task = task
            if self._is_ended:  # between the two lines above nobody could have cancelled it
                task.cancel()
            return self._finished(task)

    def _finished(self, task: "asyncio.Task[Answered]") -> Answered:
        try:
            return self._loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise RefusedQuestionError(ENDED) from None
        except self._library_error as error:  # whose text may hold what it was given
            raise RefusedQuestionError(f"pysnmp cannot do it: {type(error).__name__}") from None
        finally:
            self._task = None

    async def _begin(self, credential: Credential) -> None:
        if self._engine is None:
            with MAKING:
                self._engine = self._api.SnmpEngine()
            self._target = await self._made_target()
        _refuse_unusable(credential)
        self._who = self._security(credential)
        try:
            await self._get(self._who)
        except RefusedQuestionError as error:
            if error.is_silence and not isinstance(credential, Community) and credential.priv:
                await self._tell_hidden_apart(error)
            raise

    async def _tell_hidden_apart(self, silence: RefusedQuestionError) -> None:
        """Say so when the agent answers strangers: net-snmp is silent towards what it cannot decrypt."""
        try:
            await self._get(self._api.UsmUserData(STRANGER))
        except RefusedQuestionError as error:
            if not error.is_silence:
                raise RefusedQuestionError("DecryptionError") from silence

    async def _made_target(self) -> Any:
        family = await self._family()
        kind = self._api.Udp6TransportTarget if family == socket.AF_INET6 else self._api.UdpTransportTarget
        one_s = max(1, round(self._place.patience_s / TRIES))
        return await kind.create((self._place.host, self._place.port), timeout=one_s, retries=TRIES - 1)

    async def _family(self) -> int:
        try:
            found = await self._loop.getaddrinfo(self._place.host, self._place.port, type=socket.SOCK_DGRAM)
        except OSError as error:
            raise RefusedQuestionError(f"{self._place.host} has no address: {error.strerror}") from None
        return int(found[0][0])

    def _security(self, credential: Credential) -> Any:
        if isinstance(credential, Community):
            return self._api.CommunityData(credential.word, mpModel=1)
        config: Any = importlib.import_module("pysnmp.entity.config")
        chosen: dict[str, Any] = {}
        if credential.auth:
            protocol = getattr(config, AUTH_PROTOCOLS[credential.auth_protocol])
            chosen |= {"authKey": credential.auth, "authProtocol": protocol}
        if credential.priv:
            protocol = getattr(config, PRIV_PROTOCOLS[credential.priv_protocol])
            chosen |= {"privKey": credential.priv, "privProtocol": protocol}
        return self._api.UsmUserData(credential.name, **chosen)

    async def _get(self, who: Any) -> None:
        asked = self._asked(UPTIME)
        self._values(
            await self._api.get_cmd(self._engine, who, self._target, self._api.ContextData(), asked, lookupMib=False)
        )

    async def _table(self, root: Oid, columns: Sequence[int]) -> dict[Oid, Value]:
        walk, most = Walk.of(root, columns), 0
        while not walk.is_over:
            repetitions = min(walk.repetitions, most or walk.repetitions)
            try:
                walk = walk.after(await self._bulk(tuple(walk.at.values()), repetitions))
            except RefusedQuestionError as error:
                if str(error) != "tooBig" or repetitions == 1:
                    raise
                most = repetitions // 2
        return dict(sorted(walk.found.items()))

    async def _bulk(self, names: Sequence[Oid], repetitions: int) -> list[tuple[Oid, Value | None]]:
        asked = (self._asked(name) for name in names)
        return self._values(
            await self._api.bulk_cmd(
                self._engine, self._who, self._target, self._api.ContextData(), 0, repetitions, *asked, lookupMib=False
            )
        )

    def _asked(self, name: Oid) -> Any:
        return self._api.ObjectType(self._api.ObjectIdentity(name))

    def _values(self, answer: Any) -> list[tuple[Oid, Value | None]]:
        failure, status, _, found = answer
        if failure:
            raise RefusedQuestionError(type(failure).__name__)
        if status:
            raise RefusedQuestionError(str(status.prettyPrint()))
        return [(tuple(name), _transport_value(value)) for name, value in found]


def _refuse_unusable(credential: Credential) -> None:
    if isinstance(credential, Community):
        return
    if any(0 < len(secret) < SHORTEST_SECRET for secret in (credential.auth, credential.priv)):
        raise RefusedQuestionError(f"its secrets need at least {SHORTEST_SECRET} characters")
    if credential.priv and not credential.auth:
        raise RefusedQuestionError("privacy needs authentication too: name its secret")


def _transport_value(value: Any) -> Value | None:
    """Return a value of pysnmp as a plain one; None for noSuchObject, endOfMibView and the like, which are empty."""
    univ: Any = importlib.import_module("pyasn1.type.univ")
    if isinstance(value, univ.Null):
        return None
    if isinstance(value, univ.Integer):
        return int(value)
    if isinstance(value, univ.ObjectIdentifier):
        return tuple(value)
    return bytes(value) if isinstance(value, univ.OctetString) else None
