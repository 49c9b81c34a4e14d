"""A switch that is looked at by SNMP."""

import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

from netkit.errors import AccessError, Problem
from netkit.platforms.snmp.transport import (
    Community,
    Credential,
    RefusedQuestionError,
    SnmpConnection,
    SnmpTarget,
    WalkError,
    line,
    question,
)
from netkit.platforms.view import Reply

SAME_ADDRESS = "see the community or the user in access.yaml, and from which addresses the switch answers"


class SnmpViewer:
    """Asks an agent for its tables. Of several credentials the first that is let in is used."""

    def __init__(self, device: str, place: SnmpTarget, credentials: Sequence[Credential]) -> None:
        self._device, self._place, self._credentials = device, place, tuple(credentials)
        self._line: SnmpConnection | None = None

    def open(self) -> None:
        """See that the agent answers; AccessError says why it does not."""
        self._line = SnmpConnection(self._place)
        refused: list[str] = []
        for credential in self._credentials:
            try:
                self._line.begin(credential)
                return
            except RefusedQuestionError as error:
                refused.append(f"{_shown(credential)}: {error}")
        self.close()
        self._fail("; ".join(dict.fromkeys(refused)) or "no community and no user is known")

    def close(self) -> None:
        """Hang up; what is being asked ends."""
        if self._line is not None:
            self._line.close()

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the tables. Once the agent falls silent it is not asked for the others."""
        replies: list[Reply] = []
        silent = ""
        for command in commands:
            reply, is_silence = (Reply("", silent), False) if silent else self._reply(command)
            replies.append(reply)
            silent = silent or (f"was not asked, for {command.split()[1]} got no answer" if is_silence else "")
        return tuple(replies)

    def _reply(self, command: str) -> tuple[Reply, bool]:
        asked = question(command)
        if asked is None:
            return Reply("", "is no question for SNMP"), False
        if self._line is None:
            self._fail("the connection is closed")
        try:
            found = self._line.table(asked.root, asked.columns)
        except RefusedQuestionError as error:
            return Reply("", str(error)), error.is_silence
        except WalkError as error:
            return Reply("", str(error)), False
        return Reply("\n".join(line(name, value) for name, value in found.items()), at_s=time.time()), False

    def running_files(self) -> Mapping[str, str | None]:
        """Refuse: SNMP has no configurations."""
        self._fail("SNMP does not tell what is configured")

    def os_version(self) -> str:
        """Refuse, as it is only asked for with the configuration."""
        self._fail("SNMP does not tell what is configured")

    def _fail(self, what: str) -> NoReturn:
        where = f"{self._place.host} port {self._place.port}"
        raise AccessError(Problem(f"{self._device}: SNMP at {where}: {what}", SAME_ADDRESS))


def _shown(credential: Credential) -> str:
    return "the community" if isinstance(credential, Community) else f"user {credential.name}"
