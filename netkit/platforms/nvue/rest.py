"""NVUE through its REST API, over a persistent HTTPS connection.

The certificate of a switch is pinned, or one that an authority signed.
"""

import base64
import hashlib
import hmac
import http.client
import json
import re
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.nvue import transport
from netkit.platforms.nvue.facts.routing import IN_NVUE
from netkit.platforms.nvue.patch import COMMANDS, NvuePatch, Tree, document_in
from netkit.platforms.nvue.transport import ConfirmedState
from netkit.platforms.ssh import UNREACHABLE, SshTarget
from netkit.platforms.view import ENDLESS, EXITED, SHARE, Reply

ROOT = "/nvue_v1"
BUSY = frozenset({500, 502, 503, 504})
TRIES = 3
PAUSE_S = 1.0
LONGEST_ANSWER_BYTES = 64 << 20
LOST = "try again; a change that was not confirmed is reverted by the switch"


class LateError(AccessError):
    """A request timed out."""


class FaultError(AccessError):
    """The switch answers a single request with an internal error."""


class RestLine:
    """An HTTPS connection to a switch; not thread-safe."""

    def __init__(self, target: SshTarget, certificate: str = "") -> None:
        self.target = target
        self.certificate = certificate.lower()
        self._line: http.client.HTTPSConnection | None = None
        login = base64.b64encode(f"{target.user}:{target.password}".encode()).decode()
        self._head = {"Authorization": f"Basic {login}"}

    def open(self) -> None:
        """Connect; raises AccessError, also for an untrusted certificate."""
        self.close()
        if self.certificate:  # compared below
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the authorities, which take 15 ms to load
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        else:
            context = ssl.create_default_context()
        line = http.client.HTTPSConnection(
            self.target.host, self.target.port, timeout=self.target.timeout_s, context=context
        )
        try:
            line.connect()
        except OSError as error:
            line.close()
            raise self._unreachable(error) from None
        shown = line.sock.getpeercert(binary_form=True) or b""
        if self.certificate and not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self.certificate):
            line.close()
            what = "its certificate is not the trusted one"
            raise self.error(what, "this may be a man in the middle: find out why it changed, then run netkit trust")
        self._line = line

    def close(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    @property
    def is_alive(self) -> bool:
        return self._line is not None

    def ask(
        self, method: str, place: str, query: Mapping[str, str] | None = None, body: str = "", timeout_s: float = 0
    ) -> Any:
        """Send a request and return the JSON of the response; None for a missing object, DeviceError for a refusal."""
        where = f"{ROOT}{place}" + (f"?{urlencode(query)}" if query else "")
        for left in reversed(range(TRIES)):
            status, answer = self._exchange(method, where, body, timeout_s or self.target.timeout_s)
            if status not in BUSY or left == 0:
                break
            time.sleep(PAUSE_S)
        return self._decoded(method, status, answer)

    def _exchange(self, method: str, where: str, body: str, timeout_s: float) -> tuple[int, bytes]:
        line = self._line
        if line is None or line.sock is None:
            raise self.error("the connection is lost", LOST)
        line.sock.settimeout(timeout_s)
        try:
            kind = {"Content-Type": "application/json" if body[:1] == "{" else "text/plain"}
            line.request(method, where, body=body.encode() or None, headers={**self._head, **kind})
            response = line.getresponse()
            answer = response.read(LONGEST_ANSWER_BYTES)
        except TimeoutError:
            self.close()
            what = f"{self.target.device}: did not answer {method} {where} within {timeout_s:g} s"
            raise LateError(Problem(what, "check whether it is busy")) from None
        except (OSError, http.client.HTTPException):
            self.close()
            raise self.error("the connection is lost", LOST) from None
        if line.sock is None:  # the switch asked to close it after this answer
            self.close()
            self.open()
        return response.status, answer

    def _decoded(self, method: str, status: int, answer: bytes) -> Any:
        if status in {401, 403}:
            remedy = "check the password; on a new switch, change the default one first"
            raise self.error(f"refuses the login of {self.target.user} over HTTPS", remedy)
        if status == 500:
            raise FaultError(Problem(f"{self.target.device}: answers with status 500", "check whether nvued runs"))
        if status in BUSY:
            raise self.error(f"answers with status {status}", "check whether nvued runs")
        if status == 404 and method == "GET":
            return None
        if status == 204:
            return {}
        try:
            found = json.loads(answer)
        except (ValueError, RecursionError):
            raise self.garbled() from None
        if status >= 400:
            reason = found.get("detail") or found.get("title") if isinstance(found, dict) else ""
            refused = "the query" if method == "GET" else "the configuration"
            what = f"{self.target.device}: refuses {refused}: {' '.join(str(reason).split())[:400]}"
            raise DeviceError(Problem(what, "nothing was changed"))
        return found

    def _unreachable(self, error: OSError) -> AccessError:
        place = f"{self.target.host} port {self.target.port}"
        if isinstance(error, ssl.SSLCertVerificationError):
            return self.error(
                f"its certificate is not trusted: {error.verify_message}", "compare it, then run netkit trust"
            )
        if isinstance(error, TimeoutError):
            return self.error(f"does not answer at {place} within {self.target.timeout_s:g} s", UNREACHABLE)
        return self.error(f"cannot be reached at {place}: {error.strerror or error}", UNREACHABLE)

    def garbled(self) -> AccessError:
        return self.error("answers with something other than NVUE's JSON", "check whether nvued runs")

    def error(self, what: str, remedy: str) -> AccessError:
        return AccessError(Problem(f"{self.target.device}: {what}", remedy))


APPLYING_S = 600
POLL_S = 0.1
LONGEST_POLL_S = 1.0
MOVING = frozenset({"pending", "apply", "checking", "reloading", "confirm", "running"})
"""Intermediate states of a revision; all others are final."""
WAITING = "ays"


class RestTransport:
    """Revisions and state over `/nvue_v1`."""

    def __init__(self, target: SshTarget, certificate: str = "") -> None:
        self.device = target.device
        self.timeout_s = target.timeout_s
        self.line = RestLine(target, certificate)
        self._confirm_s = 0
        self._is_open = False
        """Whether the transport is open for its user, even if the connection is lost."""

    def open(self) -> None:
        """Connect, and test the login."""
        self.line.open()
        self._is_open = True
        self._get("/revision/applied")

    def close(self) -> None:
        self._is_open = False
        self.line.close()

    @property
    def is_alive(self) -> bool:
        return self.line.is_alive

    def config(self, revision: str = "applied") -> str:
        return json.dumps(self._get("/", rev=revision, filled="false"))

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        text = self.config()
        try:
            return text, self.show(path, view)
        except AccessError:
            return text, None

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        place = "/" + "/".join(quote(word, safe="") for word in path.split())
        return self._get(place, **({"view": view} if view else {}))

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        return ask(self.line, commands, lambda: self._is_open)

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        revision = self._begin(replaces=replaces)
        # A request must not both set and unset an object.
        for body in (document.unset, document.set):
            if body:
                self.line.ask("PATCH", "/", {"rev": revision}, json.dumps(body))
        return revision

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        if not COMMANDS.match(text):
            return self.stage(document_in(text), replaces=replaces)
        revision = self._begin(replaces=replaces)
        self.line.ask("PATCH", "/", {"rev": revision}, text)
        return revision

    def add(self, revision: str, text: str) -> None:
        body = text if COMMANDS.match(text) else json.dumps(document_in(text).set)
        self.line.ask("PATCH", "/", {"rev": revision}, body)

    def _begin(self, *, replaces: bool) -> str:
        found = self.line.ask("POST", "/revision", body="{}")
        if not isinstance(found, dict) or len(found) != 1:
            raise self.line.garbled()
        revision = str(next(iter(found)))
        if replaces:
            self.line.ask("DELETE", "/", {"rev": revision})
        return revision

    def difference(self, running: str, intended: str) -> Any:
        found = self._get("/", rev=intended, diff=running, filled="false")
        made, unset = _halves(found)
        return [{verb: tree} for verb, tree in (("unset", unset), ("set", made)) if tree]

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        """Apply a revision as `Transport.apply` does; REST takes no message."""
        del message
        body: dict[str, Any] = {"state": "apply", "auto-prompt": {"ays": "ays_yes"}}
        if confirm_s:
            body["auto-prompt"] = {"confirm": "confirm_yes", "ays": "ays_yes"}
            body["state-controls"] = {"confirm": confirm_s}
        self._confirm_s = confirm_s or 0
        self._patch_revision(revision, body)
        state, why = self._final_state(revision)
        if state not in {*transport.APPLIED, "saved", WAITING} or (state == WAITING and not confirm_s):
            what = f"{self.device}: the change was not applied: {why or state}"
            raise DeviceError(Problem(what, "the switch runs its earlier configuration"))
        return self.difference("applied", revision)

    def _final_state(self, revision: str) -> tuple[str, str]:
        """Poll a revision until it reaches a final state; return the state and its messages."""
        deadline_s, pause_s = time.monotonic() + APPLYING_S, POLL_S
        while True:
            found = self._get(f"/revision/{quote(revision, safe='')}")
            state = str(found.get("state", ""))
            if state and state not in MOVING:
                transition = found.get("transition")
                transition = transition if isinstance(transition, dict) else {}
                issues = transition.get("issue")
                messages = [str(transition.get("progress", ""))]
                if isinstance(issues, dict):
                    messages += [str(one.get("message", "")) for one in issues.values()]
                return state, "; ".join(filter(None, map(str.strip, messages)))[:400]
            if time.monotonic() > deadline_s:
                raise self.line.error(f"revision {revision} is still {state} after {APPLYING_S} s", "check nvued")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)

    def is_waiting(self) -> bool:
        return bool(self._waiting())

    def _waiting(self) -> str:
        found = self._get("/revision")
        return next((name for name, one in found.items() if isinstance(one, dict) and one.get("state") == WAITING), "")

    def confirm(self) -> ConfirmedState:
        revision = self._waiting()
        if not revision:
            what = f"{self.device}: no change waits for confirmation"
            raise DeviceError(Problem(what, "it was reverted before it was confirmed: apply it again"))
        self._patch_revision(revision, {"state": "apply", "auto-prompt": {"ays": "ays_yes"}})
        state, why = self._final_state(revision)
        if state not in {*transport.APPLIED, "saved"}:
            raise DeviceError(Problem(f"{self.device}: was not confirmed: {why or state}", "check its revisions"))
        return ConfirmedState.SAVED if transport.SAVED.fullmatch(state) else ConfirmedState.UNSAVED

    def abort(self) -> None:
        """Wait for the revert: REST documents no request to end the wait."""
        deadline_s = time.monotonic() + (self._confirm_s or APPLYING_S) + self.timeout_s
        while self.is_waiting() and time.monotonic() < deadline_s:
            time.sleep(LONGEST_POLL_S)

    def save(self) -> None:
        self._patch_revision("applied", {"state": "save", "auto-prompt": {"ays": "ays_yes"}})

    def discard(self) -> None:
        """Do nothing: a revision that is not applied has no effect."""

    def applied(self) -> str:
        """Find the newest revision that equals the applied configuration: REST does not name it."""
        found = self._get("/revision")
        names = [name for name, one in found.items() if isinstance(one, dict) and one.get("state") in transport.APPLIED]
        newest = sorted(names, key=lambda name: (len(name), name), reverse=True)
        return next((name for name in newest if not self.difference(name, "applied")), "")

    def _patch_revision(self, revision: str, body: dict[str, Any]) -> None:
        place = f"/revision/{quote(revision, safe='')}"
        self.line.ask("PATCH", place, body=json.dumps(body))

    def _get(self, place: str, **query: str) -> dict[str, Any]:
        found = self.line.ask("GET", place, query)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.line.garbled()
        return found


def _halves(found: Any) -> tuple[Tree, Tree]:
    """Split a difference into what it sets, and what it unsets, which is null."""
    intended: Tree = {}
    unset: Tree = {}
    for key, value in found.items():
        if value is None:
            unset[key] = None
        elif isinstance(value, dict) and value:
            inner_set, inner_unset = _halves(value)
            intended.update({key: inner_set} if inner_set else {})
            unset.update({key: inner_unset} if inner_unset else {})
        else:
            intended[key] = value
    return intended, unset


SHOW = re.compile(r"nv show (?P<path>[^-]\S*(?: [^-]\S*)*?)(?P<options>(?: --\S+)*) -o json")
ASPECT = re.compile(r"interface (lldp|qos-[a-z-]+)")
INCLUDE = "include="
LEAST_S = 2.0
REFUSED = f"{EXITED} 1: "
"""The failure of `nv show` for what the switch does not have, after which an alternative view is tried."""


def ask(line: RestLine, commands: Sequence[str], is_open: Callable[[], bool]) -> tuple[Reply, ...]:
    """Run `nv show` commands. AccessError only if the connection is lost at the start.

    A request that times out ends its connection; the rest use a new one, unless the transport is closed. A switch on
    which as many in a row do not end as fit the time limit is left, as over SSH after the time limit.
    """
    hangs = [ENDLESS] * SHARE
    if commands and not line.is_alive:
        raise line.error("the connection is lost", "try again")
    limit_s = max(LEAST_S, line.target.timeout_s / SHARE)
    replies: list[Reply] = []
    for command in commands:
        if not line.is_alive and not (is_open() and _reconnect(line)):
            replies += [Reply("", "not answered: the connection is lost")] * (len(commands) - len(replies))
            break
        if [reply.failure for reply in replies[-SHARE:]] == hangs:
            replies += [Reply("", f"not answered: {SHARE} others in a row do not end")] * (len(commands) - len(replies))
            break
        replies.append(_answer(line, command, limit_s))
    if not line.is_alive and any(reply.failure == ENDLESS for reply in replies) and is_open():
        _reconnect(line)  # for an alternative to what timed out
    return tuple(replies)


def _reconnect(line: RestLine) -> bool:
    """Reconnect; return whether that succeeds."""
    try:
        line.open()
    except AccessError:
        return False
    return True


def _answer(line: RestLine, command: str, limit_s: float) -> Reply:
    place, query = request(IN_NVUE.get(command, command))
    if not place:
        return Reply("", "REST has no command line: use the transport ssh")
    try:
        found = line.ask("GET", place, query, timeout_s=limit_s)
    except LateError:
        return Reply("", ENDLESS)
    except (DeviceError, FaultError) as error:
        return Reply("", f"{REFUSED}{_complaint(line, error)}")
    except AccessError as error:
        return Reply("", _complaint(line, error))
    if found is None:
        return Reply("", f"{REFUSED}the item does not exist")
    return Reply(json.dumps(found), at_s=time.time())


def _complaint(line: RestLine, error: NetkitError) -> str:
    return error.problems[0].message.removeprefix(f"{line.target.device}: ")


def request(command: str) -> tuple[str, Mapping[str, str]]:
    """Translate an `nv show` command to a path and a query; no path for other commands."""
    found = SHOW.fullmatch(command)
    if found is None:
        return "", {}
    aspect = ASPECT.fullmatch(found["path"])
    path = "interface" if aspect else found["path"]
    query = {"view": aspect[1]} if aspect else {}
    for option in found["options"].split():
        name, _, value = option.removeprefix("--").replace('"', "").partition("=")
        if not value:  # --applied and the like
            query["rev"] = name
        elif name == "view" and value.startswith(INCLUDE):
            query["include"] = value.removeprefix(INCLUDE)
        else:
            query[name] = value
    return "/" + "/".join(quote(word, safe="") for word in path.split()), query
