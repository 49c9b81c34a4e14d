"""Talking to one SNMP agent through pysnmp: one engine, one UDP socket, one event loop, in whichever thread asks.

pysnmp ties an engine to the loop it was made in and leaves its timer running there, so each connection has a loop of
its own and ends both together. Names are numbers throughout: no MIB is looked up.
"""

import asyncio
import importlib
import socket
import threading
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from netkit.platforms.snmp.credential import AUTH_PROTOCOLS, PRIV_PROTOCOLS, Community, Credential
from netkit.platforms.snmp.varbind import Oid, Value
from netkit.platforms.snmp.walk import Walk

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
class Place:
    """Where an agent listens, and how long one answer may take."""

    host: str
    port: int = 161
    patience_s: float = 30.0


class Line:
    """A connection to an agent."""

    def __init__(self, place: Place) -> None:
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
        return [(tuple(name), _value(value)) for name, value in found]


def _refuse_unusable(credential: Credential) -> None:
    if isinstance(credential, Community):
        return
    if any(0 < len(secret) < SHORTEST_SECRET for secret in (credential.auth, credential.priv)):
        raise RefusedQuestionError(f"its secrets need at least {SHORTEST_SECRET} characters")
    if credential.priv and not credential.auth:
        raise RefusedQuestionError("privacy needs authentication too: name its secret")


def _value(value: Any) -> Value | None:
    """Return a value of pysnmp as a plain one; None for noSuchObject, endOfMibView and the like, which are empty."""
    univ: Any = importlib.import_module("pyasn1.type.univ")
    if isinstance(value, univ.Null):
        return None
    if isinstance(value, univ.Integer):
        return int(value)
    if isinstance(value, univ.ObjectIdentifier):
        return tuple(value)
    return bytes(value) if isinstance(value, univ.OctetString) else None
