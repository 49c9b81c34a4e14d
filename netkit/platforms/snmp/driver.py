"""A switch whose state is read by SNMP."""

import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from netkit.errors import AccessError, Problem
from netkit.platforms.snmp import Community, Credential
from netkit.platforms.snmp.transport import (
    SnmpConnection,
    SnmpError,
    SnmpTarget,
    WalkError,
    format_row,
    parse_command,
)
from netkit.platforms.view import Reply

REMEDY = "check the community or the user in access.yaml, and which addresses the switch answers"
NO_CONFIGURATION = "SNMP does not expose the configuration"


class SnmpViewer:
    """Walks the tables of an agent, with the first credential that the agent accepts."""

    def __init__(self, device: str, target: SnmpTarget, credentials: Sequence[Credential]) -> None:
        self._device, self._target, self._credentials = device, target, tuple(credentials)
        self._connection: SnmpConnection | None = None

    def open(self) -> None:
        """Try each credential; raise AccessError with every refusal if none is accepted."""
        self._connection = SnmpConnection(self._target)
        refusals: list[str] = []
        for credential in self._credentials:
            try:
                self._connection.begin(credential)
                return
            except SnmpError as error:
                name = "the community" if isinstance(credential, Community) else f"user {credential.name}"
                refusals.append(f"{name}: {error}")
        self.close()
        self._fail("; ".join(dict.fromkeys(refusals)) or "no community and no user is known")

    def close(self) -> None:
        """Close the connection and cancel a query in progress."""
        if self._connection is not None:
            self._connection.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Walk one table for each command; after a timeout, skip the rest."""
        replies: list[Reply] = []
        skipped = ""
        for command in commands:
            reply, is_timeout = (Reply("", skipped), False) if skipped else self._reply(command)
            replies.append(reply)
            if is_timeout:
                skipped = f"not queried: {command.split()[1]} got no answer"
        return tuple(replies)

    def _reply(self, command: str) -> tuple[Reply, bool]:
        """The reply to a command, and whether the agent timed out."""
        query = parse_command(command)
        if query is None:
            return Reply("", "not an SNMP query"), False
        if self._connection is None:
            self._fail("the connection is closed")
        try:
            values = self._connection.table(query.root, query.columns)
        except SnmpError as error:
            return Reply("", str(error)), error.is_timeout
        except WalkError as error:
            return Reply("", str(error)), False
        return Reply("\n".join(format_row(name, value) for name, value in values.items()), at_s=time.time()), False

    def running_files(self) -> Mapping[str, str | None]:
        """Raise AccessError: SNMP does not expose the configuration."""
        self._fail(NO_CONFIGURATION)

    def os_version(self) -> str:
        """Raise AccessError: the version is only needed along with the configuration."""
        self._fail(NO_CONFIGURATION)

    def _fail(self, what: str) -> NoReturn:
        where = f"{self._target.host} port {self._target.port}"
        raise AccessError(Problem(f"{self._device}: SNMP at {where}: {what}", REMEDY))
