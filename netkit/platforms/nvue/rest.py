"""NVUE by its REST interface: the same revisions as the command line's, over HTTPS."""

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from netkit.errors import AccessError, DeviceError, NetkitError, Problem
from netkit.platforms.nvue import transport
from netkit.platforms.nvue.facts.routing import IN_NVUE
from netkit.platforms.nvue.patch import COMMANDS, NvuePatch, Tree, document_in
from netkit.platforms.nvue.rest_line import FaultError, LateError, RestLine
from netkit.platforms.nvue.transport import ConfirmedState
from netkit.platforms.ssh import SshTarget
from netkit.platforms.view import ENDLESS, EXITED, Reply

APPLYING_S = 600
POLL_S = 0.1
LONGEST_POLL_S = 1.0
MOVING = frozenset({"pending", "apply", "checking", "reloading", "confirm", "running"})
"""States on the way; all others are ends."""
WAITING = "ays"


class RestTransport:
    """`/nvue_v1` on the switch."""

    def __init__(self, target: SshTarget, certificate: str = "") -> None:
        self.device = target.device
        self.timeout_s = target.timeout_s
        self.line = RestLine(target, certificate)
        self._confirm_s = 0
        self._is_wanted = False
        """Whether whoever opened it has not closed it."""

    def open(self) -> None:
        """Connect, and see that the login is accepted."""
        self.line.open()
        self._is_wanted = True
        self._get("/revision/applied")

    def close(self) -> None:
        """Hang up."""
        self._is_wanted = False
        self.line.close()

    @property
    def is_alive(self) -> bool:
        """Whether the connection stands."""
        return self.line.is_alive

    def config(self, revision: str = "applied") -> str:
        """Return a revision as JSON text."""
        return json.dumps(self._get("/", rev=revision, filled="false"))

    def config_and(self, path: str, view: str = "") -> tuple[str, dict[str, Any] | None]:
        """Return what is applied, and an object of the running switch beside it; None where that cannot be told."""
        text = self.config()
        try:
            return text, self.show(path, view)
        except AccessError:
            return text, None

    def show(self, path: str, view: str = "") -> dict[str, Any]:
        """Return an object of the running switch; empty where there is none."""
        place = "/" + "/".join(quote(word, safe="") for word in path.split())
        return self._get(place, **({"view": view} if view else {}))

    def ask(self, commands: Sequence[str]) -> tuple[Reply, ...]:
        """Return the answer to each command, in order; one that fails is an answer with a failure."""
        return ask(self.line, commands, lambda: self._is_wanted)

    def stage(self, document: NvuePatch, *, replaces: bool = False) -> str:
        """Make a revision of what is applied and a document, or of the document alone; return its name."""
        revision = self._begin(replaces=replaces)
        # One request may not both set and unset an object.
        for body in (document.unset, document.set):
            if body:
                self.line.ask("PATCH", "/", {"rev": revision}, json.dumps(body))
        return revision

    def stage_text(self, text: str, *, replaces: bool = False) -> str:
        """Make the same of a file as a person writes it, in YAML or in lines of nv set and nv unset."""
        if not COMMANDS.match(text):
            return self.stage(document_in(text), replaces=replaces)
        revision = self._begin(replaces=replaces)
        self.line.ask("PATCH", "/", {"rev": revision}, text)
        return revision

    def add(self, revision: str, text: str) -> None:
        """Add to a staged revision what a file says; DeviceError when it is refused, and the revision is as before."""
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
        """Return what differs between two revisions, as a list of `set` and `unset`."""
        found = self._get("/", rev=intended, diff=running, filled="false")
        made, gone = _halves(found)
        return [{verb: tree} for verb, tree in (("unset", gone), ("set", made)) if tree]

    def apply(self, revision: str, message: str, confirm_s: int | None) -> Any:
        """Apply a revision, for some seconds or for good; return how what runs then differs from it.

        The interface takes no message.
        """
        del message
        wanted: dict[str, Any] = {"state": "apply", "auto-prompt": {"ays": "ays_yes"}}
        if confirm_s:
            wanted["auto-prompt"] = {"confirm": "confirm_yes", "ays": "ays_yes"}
            wanted["state-controls"] = {"confirm": confirm_s}
        self._confirm_s = confirm_s or 0
        self._tell(revision, wanted)
        state, why = self._ended(revision)
        if state not in {*transport.APPLIED, "saved", WAITING} or (state == WAITING and not confirm_s):
            what = f"{self.device}: the change was not applied: {why or state}"
            raise DeviceError(Problem(what, "the switch runs what it ran before"))
        return self.difference("applied", revision)

    def _ended(self, revision: str) -> tuple[str, str]:
        """Return the state a revision comes to rest in, and what it says."""
        deadline_s, pause_s = time.monotonic() + APPLYING_S, POLL_S
        while True:
            found = self._get(f"/revision/{quote(revision, safe='')}")
            state = str(found.get("state", ""))
            if state and state not in MOVING:
                return state, _said(found)
            if time.monotonic() > deadline_s:
                raise self.line.error(f"revision {revision} is still {state} after {APPLYING_S} s", "look at nvued")
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_POLL_S)

    def is_waiting(self) -> bool:
        """Whether an applied revision waits to be confirmed."""
        return bool(self._waiting())

    def _waiting(self) -> str:
        found = self._get("/revision")
        return next((name for name, one in found.items() if isinstance(one, dict) and one.get("state") == WAITING), "")

    def confirm(self) -> ConfirmedState:
        """Keep what waits; return what became of it."""
        revision = self._waiting()
        if not revision:
            what = f"{self.device}: nothing waits to be confirmed"
            raise DeviceError(Problem(what, "it went back before it was confirmed: apply it again"))
        self._tell(revision, {"state": "apply", "auto-prompt": {"ays": "ays_yes"}})
        state, why = self._ended(revision)
        if state not in {*transport.APPLIED, "saved"}:
            raise DeviceError(Problem(f"{self.device}: was not confirmed: {why or state}", "look at its revisions"))
        return ConfirmedState.SAVED if transport.SAVED.fullmatch(state) else ConfirmedState.UNSAVED

    def abort(self) -> None:
        """Wait until it goes back: no request to end the wait is documented."""
        deadline_s = time.monotonic() + (self._confirm_s or APPLYING_S) + self.timeout_s
        while self.is_waiting() and time.monotonic() < deadline_s:
            time.sleep(LONGEST_POLL_S)

    def save(self) -> None:
        """Save what is applied to startup."""
        self._tell("applied", {"state": "save", "auto-prompt": {"ays": "ays_yes"}})

    def discard(self) -> None:
        """Do nothing: a revision that is not applied changes nothing, and hinders nobody."""

    def applied(self) -> str:
        """Return the newest revision that is what runs: the interface does not tell which one that is."""
        found = self._get("/revision")
        ran = [name for name, one in found.items() if isinstance(one, dict) and one.get("state") in transport.APPLIED]
        newest = sorted(ran, key=lambda name: (len(name), name), reverse=True)
        return next((name for name in newest if not self.difference(name, "applied")), "")

    def _tell(self, revision: str, wanted: dict[str, Any]) -> None:
        place = f"/revision/{quote(revision, safe='')}"
        self.line.ask("PATCH", place, body=json.dumps(wanted), timeout_s=max(APPLYING_S, self.timeout_s))

    def _get(self, place: str, **query: str) -> dict[str, Any]:
        found = self.line.ask("GET", place, query)
        if found is None:
            return {}
        if not isinstance(found, dict):
            raise self.line.garbled()
        return found


def _halves(found: Any) -> tuple[Tree, Tree]:
    """Return what a difference sets, and what it takes away: where it says null."""
    made: Tree = {}
    gone: Tree = {}
    for key, value in found.items():
        if value is None:
            gone[key] = None
        elif isinstance(value, dict) and value:
            inner_made, inner_gone = _halves(value)
            made.update({key: inner_made} if inner_made else {})
            gone.update({key: inner_gone} if inner_gone else {})
        else:
            made[key] = value
    return made, gone


def _said(found: dict[str, Any]) -> str:
    """Return the complaints of a revision in one line."""
    transition = found.get("transition")
    transition = transition if isinstance(transition, dict) else {}
    issues = transition.get("issue")
    told = [str(one.get("message", "")) for one in issues.values()] if isinstance(issues, dict) else []
    return "; ".join(filter(None, map(str.strip, [str(transition.get("progress", "")), *told])))[:400]


SHOW = re.compile(r"nv show (?P<path>[^-]\S*(?: [^-]\S*)*?)(?P<options>(?: --\S+)*) -o json")
ASPECT = re.compile(r"interface (lldp|qos-[a-z-]+)")
INCLUDE = "include="
SHARE = 3
"""One command may take this part of the time a request has, so that the others are not waited for in vain."""
LEAST_S = 2.0
REFUSED = f"{EXITED} 1: "
"""As `nv show` ends over what the switch does not have or cannot tell: it may be asked in another way then."""


def ask(line: RestLine, commands: Sequence[str], is_wanted: Callable[[], bool]) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when the connection is gone from the start.

    A request that took too long ends its connection; the others have a fresh one as long as one is wanted at all.
    """
    if commands and not line.is_alive:
        raise line.error("the connection is lost", "try again")
    limit_s = max(LEAST_S, line.target.timeout_s / SHARE)
    replies: list[Reply] = []
    for command in commands:
        if not line.is_alive and not (is_wanted() and _is_open_again(line)):
            replies += [Reply("", "not answered: the connection is lost")] * (len(commands) - len(replies))
            break
        replies.append(_answer(line, command, limit_s))
    if not line.is_alive and any(reply.failure == ENDLESS for reply in replies) and is_wanted():
        _is_open_again(line)  # what took too long may be asked in another way
    return tuple(replies)


def _is_open_again(line: RestLine) -> bool:
    """Connect once more; false when that cannot be."""
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
    """Return the place and the query that `nv show` stands for; no place for other commands."""
    found = SHOW.fullmatch(command)
    if found is None:
        return "", {}
    aspect = ASPECT.fullmatch(found["path"])
    path = "interface" if aspect else found["path"]
    given = [_parameter(option.removeprefix("--")) for option in found["options"].split()]
    query = {"view": aspect[1]} if aspect else {}
    return "/" + "/".join(quote(word, safe="") for word in path.split()), query | dict(given)


def _parameter(option: str) -> tuple[str, str]:
    """Return what an option of the command line is in a query: a view that includes parts is one of its own there."""
    name, _, value = option.replace('"', "").partition("=")
    is_part = name == "view" and value.startswith(INCLUDE)
    return ("include", value.removeprefix(INCLUDE)) if is_part else (name if value else "rev", value or name)
