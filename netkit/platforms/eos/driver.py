"""NAPALM driver for EOS: NAPALM's own, restricted to the changes of a plan.

The certificate is verified, changes go through a session, and nothing is saved before the commit is confirmed.
"""

import contextlib
import http.client
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import pyeapi.eapilib as eapi
from napalm.base.exceptions import NapalmException
from napalm.eos.eos import EOSDriver

from netkit.errors import AccessError, DeviceError, Problem
from netkit.platforms.config_lines import missing
from netkit.platforms.driver import Candidate, SessionState
from netkit.platforms.eos import transport
from netkit.platforms.eos.facts.interface import long_name
from netkit.platforms.eos.model import FILE, MODEL
from netkit.platforms.eos.session import (
    commands,
    deaf_groups,
    drain_lines,
    is_drain_intended,
    is_own_drain,
    undrain_lines,
    without_drain,
)
from netkit.platforms.eos.transport import PinnedEapi
from netkit.platforms.secrets import SecretResolver
from netkit.platforms.view import Reply

PREFIX = "netkit-"
BEFORE = "flash:netkit-before"
LONGEST_TIMER_S = 86399
SESSIONS = ({"cmd": "show bgp neighbors vrf all", "revision": 2}, "show ip bgp summary vrf all")
NOT_EAPI = ("the answer is not eAPI", "check the address and port")
TRANSPORTS = (None, "", "eapi", "https")
ESTABLISHED = "Established"


class EosDriver(EOSDriver):  # type: ignore[misc]
    """One switch that runs EOS. Not thread-safe; stays open until its commit is confirmed."""

    def __init__(
        self,
        hostname: str,
        username: str,
        password: str,
        timeout: float = 60,
        optional_args: dict[str, Any] | None = None,
    ) -> None:
        options = dict(optional_args or {})
        self._name = str(options.setdefault("device", hostname))
        if options.get("transport") in TRANSPORTS:
            options["transport"] = PinnedEapi
        self.config_session: str | None
        self.device: Any
        super().__init__(hostname, username, password, timeout, options)
        self._secrets = SecretResolver(options.get("secrets"))
        self._candidate: Candidate | None = None
        self._has_backup = self._is_hung_up = False

    def open(self) -> None:
        """Connect. AccessError if that fails, or the certificate is not the trusted one."""
        self.device, self._is_hung_up = None, False  # NAPALM would reuse a closed connection
        with self._errors():
            super().open()

    def close(self) -> None:
        """Disconnect; a commit that waits for its confirmation keeps waiting until its timer expires."""
        if self.device is not None and self.config_session is not None:
            with contextlib.suppress(AccessError, DeviceError):
                if self.config_session not in self._pending():
                    self.discard_config()
        self.config_session, self._is_hung_up = None, True
        if self.device is not None and isinstance(self.device.connection, PinnedEapi):
            self.device.connection.transport.hang_up()

    def _run_commands(self, commands: Any, **kwargs: Any) -> Any:
        try:
            return super()._run_commands(commands, **kwargs)
        except eapi.ConnectionError as error:
            self._refuse_connection(error)
        except (http.client.HTTPException, KeyError, TypeError, AttributeError, IndexError):
            raise self._access(*NOT_EAPI) from None

    def _refuse_connection(self, error: Exception) -> NoReturn:
        """Raise an AccessError that explains why there is no answer."""
        reason = getattr(self.device.connection, "socket_error", None)
        place = f"{self.hostname} port {self.device.connection.transport.port}"
        if "nauthorized" in str(error):
            raise self._access(f"refuses the login of {self.username}", "check the user and the password") from None
        if isinstance(reason, TimeoutError):
            what = f"did not answer at {place} within {self.timeout:g} s"
            raise self._access(what, "check the load of its control CPU") from None
        if isinstance(reason, OSError):
            what = f"cannot be reached at {place}: {reason.strerror or reason}"
            raise self._access(what, "check the address, the port and the management network") from None
        raise self._access(*NOT_EAPI) from None

    def _access(self, what: str, remedy: str) -> AccessError:
        return AccessError(Problem(f"{self._name}: {what}", remedy))

    def _device(self, what: str, remedy: str) -> DeviceError:
        return DeviceError(Problem(f"{self._name}: {what}", remedy))

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        """Convert errors of the switch or NAPALM to netkit's, with secrets masked."""
        with self._secrets.hiding():
            try:
                yield
            except (eapi.CommandError, NapalmException) as error:
                raise self._device(f"the switch refuses: {' '.join(str(error).split())}", "see its log") from None
            except (KeyError, TypeError, AttributeError, IndexError):
                raise self._access(*NOT_EAPI) from None

    def _text(self) -> str:
        with self._errors():
            found = str(self._run_commands(["show running-config"], encoding="text")[0]["output"])
        if not found.rstrip().endswith("end"):
            raise self._access("the running configuration is incomplete", "try again, and check its log")
        return found

    def running_files(self) -> Mapping[str, str | None]:
        """Read the running configuration, without a drain by netkit."""
        return {FILE: without_drain(self._text())}

    def os_version(self) -> str:
        with self._errors():
            return str(self._run_commands(["show version"])[0]["version"])

    def sessions(self) -> tuple[SessionState, ...]:
        with self._errors():
            try:
                neighbors, summary = self._run_commands([*SESSIONS])
            except eapi.CommandError:  # BGP is not configured
                return ()
            return tuple(parse_sessions(neighbors, summary, time.time()))

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Run commands and return a reply to each, in order; a command that fails is a reply with a failure."""
        return transport.ask(self._post, commands, float(self.timeout), str(self.enablepwd))

    def _post(self, request: str, timeout_s: float) -> Mapping[str, Any]:
        if self._is_hung_up:
            raise self._access("the connection was closed", "try again")
        connection = self.device.connection
        connection.transport.timeout = timeout_s
        try:
            return dict(connection.send(request))
        except eapi.CommandError as error:
            return {"error": {"code": error.error_code, "message": error.error_text, "data": error.output}}
        except eapi.ConnectionError as error:
            if isinstance(connection.socket_error, TimeoutError):
                raise TimeoutError from None
            self._refuse_connection(error)
        except (http.client.HTTPException, KeyError, TypeError, AttributeError, ValueError):
            raise self._access(*NOT_EAPI) from None
        finally:
            connection.transport.timeout = self.timeout

    def load_candidate(self, candidate: Candidate) -> None:
        """Stage only the lines that differ, so that everything netkit does not own stays."""
        self.discard_config()
        if not candidate.changes:
            return
        lines = commands(candidate.changes, self._text(), candidate.files.get(FILE, ""))
        self._abort_stale_sessions()
        with self._errors():
            self.load_merge_candidate(config="\n".join(map(self._secrets.text, lines)))
        self._candidate = candidate

    def _abort_stale_sessions(self) -> None:
        """Abort sessions that a terminated netkit left behind: they block the next one."""
        with self._errors():
            found = self._run_commands(["show configuration sessions"])[0]["sessions"]
            for name, one in found.items():
                if name.startswith(PREFIX) and one.get("state") == "pending":
                    self._run_commands([f"configure session {name} abort"], encoding="text")

    def _load_config(self, filename: str | None = None, config: Any = None, replace: bool = True) -> None:
        self.config_session, self._candidate = f"{PREFIX}{time.time_ns() // 1000}", None
        super()._load_config(filename, config, replace)

    def compare_config(self) -> str:
        """Read the switch's own diff of the staged change; empty if there is none."""
        with self._errors():
            return self._secrets.hidden(str(super().compare_config()))

    def commit_config(self, message: str = "", revert_in: int | None = None) -> None:
        """Apply; with `revert_in`, the switch itself reverts after that many seconds, else it is saved immediately."""
        del message  # EOS does not store it
        name = self.config_session
        if name is None:
            raise self._device("nothing is staged", "load a candidate first")
        if revert_in is not None and not 0 < revert_in <= LONGEST_TIMER_S:
            raise self._device(f"has no timer of {revert_in} s", f"use 1 to {LONGEST_TIMER_S}")
        before, wanted = self._text(), self.compare_config()
        with self._errors():
            if revert_in is None:
                self._run_commands(
                    [f"copy running-config {BEFORE}", f"configure session {name} commit"], encoding="text"
                )
                self.config_session, self._has_backup = None, True
            else:
                timer = time.strftime("%H:%M:%S", time.gmtime(revert_in))
                self._run_commands([f"configure session {name} commit timer {timer}"], encoding="text")
        # A commit can fail and still report success: compare with what runs now.
        running = self._text()
        left = missing(self._candidate.changes, MODEL.parse({FILE: running})) if self._candidate else []
        if left or (wanted and not self._candidate and running == before):
            place = f": {' / '.join(left[0].path)}" if left else ""
            what = f"the switch reports the change as applied, but does not run it{place}"
            raise self._device(what, "check its log; its configuration is unchanged or reverts by its timer")
        if revert_in is None:
            self._save()

    def _pending(self) -> dict[str, int]:
        with self._errors():
            return dict(self._get_pending_commits())

    def has_pending_commit(self) -> bool:
        """Whether a commit waits for its confirmation."""
        return bool(self._pending())

    def _waiting(self) -> str:
        """Find the session that waits for confirmation: this object's, or one of a terminated netkit."""
        names = [name for name in self._pending() if name == self.config_session or name.startswith(PREFIX)]
        return names[0] if names else ""

    def confirm_commit(self) -> None:
        """Keep the change and save it; during a drain by netkit, saving waits until the drain ends."""
        name = self._waiting()
        if not name:
            raise self._device(
                "no commit waits for a confirmation", "its timer expired: check its configuration, and plan again"
            )
        with self._errors():
            self._run_commands([f"configure session {name} commit"], encoding="text")
        self.config_session = None
        if self._pending():
            raise self._device("still waits after the confirmation", "the change reverts when its timer expires")
        self._save()

    def _save(self) -> None:
        if is_own_drain(self._text()):
            return
        try:
            self._run_commands(["write memory"], encoding="text")
        except eapi.CommandError as error:
            what = f"the running configuration is not saved, and a reboot loses it: {' '.join(str(error).split())}"
            raise self._device(what, "make room on its flash, then write memory") from None

    def discard_config(self) -> None:
        """Discard the staged change."""
        self._candidate = None
        if self.config_session is not None:
            name, self.config_session = self.config_session, None
            with contextlib.suppress(eapi.CommandError):  # it no longer exists
                self._run_commands([f"configure session {name} abort"], encoding="text")

    def rollback(self) -> None:
        """Revert a commit that waits for its confirmation, else the last one of this object."""
        name = self._waiting()
        with self._errors():
            if name:
                self._run_commands([f"configure session {name} abort"], encoding="text")
            elif self._has_backup:
                self._run_commands([f"configure replace {BEFORE}"], encoding="text")
                self._save()
        self.config_session, self._has_backup = None, False
        if name and name in self._pending():
            raise self._device("still waits after the rollback", "the change reverts when its timer expires")

    def drain(self) -> None:
        """Signal every neighbour to route around the switch, until `undrain` or a reboot."""
        text = self._text()
        running = MODEL.parse({FILE: text})
        if is_own_drain(text) or is_drain_intended(running):
            return
        lines = drain_lines(running)
        if not lines:
            raise self._device("has no BGP neighbour that could take over its traffic", "deploy it without a drain")
        if groups := deaf_groups(running):
            what = f"neighbours of {', '.join(groups)} would not learn of a drain, and continue to send to it"
            raise self._device(what, "add send-community to these peer groups, or use --no-drain")
        self._change(lines)
        if not is_own_drain(self._text()):
            raise self._device("the switch reports that it drains, but does not", "check its log")

    def undrain(self) -> None:
        """End a drain by netkit; an intended one stays."""
        text = self._text()
        if is_own_drain(text):
            self._change(undrain_lines(text))
            if is_own_drain(self._text()):
                raise self._device("the switch reports that its drain has ended, but it has not", "check its log")
            if not self._pending():
                self._save()

    def _change(self, lines: list[str]) -> None:
        """Make a change independently of the staged one.

        While a commit waits for its timer, EOS commits no other session, so the lines are entered outside of one. The
        timer reverts them too, since it restores the complete earlier configuration. Unverified on a switch.
        """
        if self._pending():
            with self._errors():
                self._run_commands(["configure", *lines, "end"])
            return
        name = f"{PREFIX}drain-{time.time_ns() // 1000}"
        with self._errors():
            try:
                self._run_commands([f"configure session {name}", *lines, "end", f"configure session {name} commit"])
            except eapi.CommandError:
                with contextlib.suppress(eapi.CommandError):
                    self._run_commands([f"configure session {name} abort"], encoding="text")
                raise


DRIVER = EosDriver


def parse_sessions(neighbors: Mapping[str, Any], summary: Mapping[str, Any], now_s: float) -> Iterator[SessionState]:
    """Parse the sessions of `show bgp neighbors vrf all`, with the prefixes of `show ip bgp summary vrf all`."""
    counted = {
        name: peer
        for vrf in _objects(summary.get("vrfs"))
        for address, peer in _named(vrf.get("peers"))
        for name in (address, long_name(address.rpartition("%")[2]))  # fe80::1%Et1/5, or Et1/5 without an address yet
    }
    for vrf in _objects(neighbors.get("vrfs")):
        peers = vrf.get("peerList")
        for peer in peers if isinstance(peers, list) else []:
            name = str(peer.get("ifName") or peer.get("peerAddress", ""))
            counts = counted.get(name, {})
            is_established = peer.get("state") == ESTABLISHED
            since_s = counts.get("upDownTime", now_s)
            uptime_s = int(max(0, now_s - since_s)) if is_established and isinstance(since_s, int | float) else 0
            yield SessionState(name, is_established, int(counts.get("prefixReceived", 0)), uptime_s)


def _named(found: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from ((name, one) for name, one in found.items() if isinstance(one, dict)) if isinstance(found, dict) else ()


def _objects(found: object) -> Iterator[Mapping[str, Any]]:
    yield from (one for _, one in _named(found))
