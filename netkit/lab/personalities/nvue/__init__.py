"""NVIDIA Cumulus Linux 5.x as NVUE presents it: its personality, and its REST API."""

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import parse_qs, unquote

from netkit.design.fabric import Switch
from netkit.lab.agents import gnmi
from netkit.lab.node import ConfigRefusedError, Node
from netkit.lab.personalities.nvue.command_line import action, change, config, look_up, opened, read, show
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import BREAK, CumulusSwitch, Issue, NvueSchemaNode, checked, merged, schema
from netkit.lab.personalities.nvue.show import included, only
from netkit.lab.personalities.nvue.system import (
    LOGIN,
    Applier,
    NvueCommandError,
    NvueRevision,
    NvueSystem,
    RevisionStore,
    UnknownRevisionError,
    complaint,
    has_account,
)
from netkit.lab.personalities.nvue.tree import Tree, child, difference, has, hidden, is_on, load, nested, overlay
from netkit.lab.personality import Call, Elem, GnmiLeaf, Personality
from netkit.lab.reading import SwitchPortReading

ROOT = "/nvue_v1"
KIND = "REST API"
NO_BODY_SINCE = (5, 10)
PROGRESS = {
    "invalid": "Invalid config",
    "ignore_fail": "Failure during apply. Ignore?",
    "ays": "Waiting for confirmation",
    "ays_fail": "Aborted apply after warnings",
}
Answer = tuple[int, object]


class NotFoundError(Exception):
    """The resource does not exist."""


@dataclass(frozen=True, slots=True)
class NvueRequest:
    """A parsed request."""

    path: tuple[str, ...]
    query: Mapping[str, Sequence[str]]
    body: object
    user: str

    def parameter(self, name: str) -> str:
        return next(iter(self.query.get(name, ())), "")


def rest(
    system: NvueSystem, method: str, path: str, query: Mapping[str, Sequence[str]], body: object, user: str = "cumulus"
) -> Answer:
    """Answer a request. The body is parsed JSON, or text with `nv set` lines; the query is that of `parse_qs`."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        return _error(404, "Not Found", path)
    words = tuple(unquote(word) for word in path.removeprefix(ROOT).split("/") if word)
    request = NvueRequest(words, query, body, user)
    resource = REVISIONS if words[:1] == ("revision",) else TREE
    if method not in resource:
        return _error(405, "Method Not Allowed", method)
    try:
        return resource[method](system, request)
    except UnknownRevisionError as error:
        return _error(404, "Not Found", f"revision {error} does not exist")
    except OSError as error:
        return _error(500, "Internal Server Error", error.strerror or "")
    except (NvueCommandError, NotFoundError) as error:
        is_missing = isinstance(error, NotFoundError) or "does not exist" in str(error)
        return _error(404 if is_missing else 400, "Not Found" if is_missing else "Bad Request", str(error).strip())


def _error(status: int, title: str, detail: str) -> Answer:
    return status, {"title": title, "status": status, "detail": detail, "type": "about:blank"}


def _as_resource(revision: NvueRevision) -> Tree:
    issues: Tree = {
        f"{at:05}": {
            "code": issue.code,
            "data": {"location": issue.location, "reason": issue.reason},
            "message": issue.message,
            "severity": "error",
        }
        for at, issue in enumerate(revision.issues)
    }
    return {"state": revision.state, "transition": {"issue": issues, "progress": PROGRESS.get(revision.state, "")}}


def _list(system: NvueSystem, request: NvueRequest) -> Answer:
    if len(request.path) == 1:
        return 200, {str(number): _as_resource(found) for number, found in sorted(system.store.revisions.items())}
    return 200, _as_resource(_revision(system, request.path[1]))


def _revision(system: NvueSystem, name: str) -> NvueRevision:
    found = system.store.find(name)
    if found is None:
        raise UnknownRevisionError(name)
    return found


def _begin(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = system.store.begin(request.user, KIND)
    return 200, {str(revision.number): _as_resource(revision)}


def _change_state(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = _revision(system, request.path[1] if len(request.path) > 1 else "")
    body = request.body if isinstance(request.body, dict) else {}
    if body.get("state") == "save":
        if system.applier.confirmation:
            raise NvueCommandError("a revision waits for confirmation")
        system.applier.save()
        return 200, {**_as_resource(revision), "state": "saved"}
    if body.get("state") != "apply":
        raise NvueCommandError(f"'{body.get('state')}' is not one of apply, save")
    if revision.state == "ays" and system.applier.confirmation:
        return 200, _as_resource(system.applier.confirm() or revision)
    if _object(body, "auto-prompt").get("ays") != "ays_yes":
        return 200, {**_as_resource(revision), "state": "ays"}
    confirm_s = _object(body, "state-controls").get("confirm", 0)
    applied = system.applier.apply(revision, "", float(confirm_s) if isinstance(confirm_s, int) else 0)
    return 200, _as_resource(applied)


def _object(body: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = body.get(key)
    return found if isinstance(found, dict) else {}


def _get(system: NvueSystem, request: NvueRequest) -> Answer:
    name, other = request.parameter("rev") or "operational", request.parameter("diff")
    patterns = request.query.get("include", ())
    if other:
        left, right = (hidden(system.store.tree(one)) for one in (name, other))
        found = difference(right, left)
        changes = overlay(found.removed, found.added)
        below = child(changes, *request.path[:-1]).get(request.path[-1], {}) if request.path else changes
        return 200, only(below, patterns)

    def whole() -> object:
        return look_up(system, request.path, name, request.parameter("view"), request.user)

    is_state = bool(patterns) and name == "operational"
    return 200, included(system, request.path, patterns, whole) if is_state else only(whole(), patterns)


def _pending(system: NvueSystem, request: NvueRequest) -> NvueRevision:
    found = _revision(system, request.parameter("rev"))
    if found.state in {"applied", "applied_and_saved", "ays"}:
        raise NvueCommandError(f"revision {found.number} is {found.state} and cannot be changed")
    return found


def _patch(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = _pending(system, request)
    if isinstance(request.body, str):
        changes = read(system, request.body)
        system.store.change(system.store.change(revision, changes.unset), changes.set)
        return 200, {}
    issues: list[Issue] = []
    tree = checked(system.known, nested(request.path, request.body), issues)
    if issues or not isinstance(tree, dict):
        raise complaint(issues or [Issue("", "the body is not an object", "schema")])
    changed = system.store.change(revision, opened(system, tree))
    added = hidden(difference(revision.tree, changed.tree).added)
    return 200, added if system.chassis.version >= NO_BODY_SINCE else hidden(changed.tree)


def _delete(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = _pending(system, request)
    if request.path:
        issues: list[Issue] = []
        removal = checked(system.known, nested(request.path, None), issues)
        if issues:
            raise NotFoundError("The requested item does not exist.")
        system.store.change(revision, removal if isinstance(removal, dict) else {})
    else:
        system.store.put(replace(revision, tree={}))
    return (204, None) if system.chassis.version >= NO_BODY_SINCE else (200, {})


Handler = Callable[[NvueSystem, NvueRequest], Answer]
REVISIONS: Mapping[str, Handler] = {"GET": _list, "POST": _begin, "PATCH": _change_state}
TREE: Mapping[str, Handler] = {"GET": _get, "PATCH": _patch, "DELETE": _delete}


JSON = {"Content-Type": "application/json"}


def answer(
    system: NvueSystem, method: str, target: str, headers: Mapping[str, str], body: bytes, user: str
) -> tuple[int, Mapping[str, str], bytes]:
    """Answer an HTTP request; refuse it while the API is disabled."""
    if has(system.applied, "system", "api") and not is_on(system.applied, "system", "api", default=True):
        return 503, {"Content-Type": "text/plain"}, b"the API is not enabled\n"
    if user == LOGIN and not has_account(system.applied):
        return 401, {"WWW-Authenticate": 'Basic realm="NVUE"'}, b""
    path, _, query = target.partition("?")
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    try:
        content: object = body.decode("utf-8") or None
        if body and not kind.startswith("text/plain"):
            content = json.loads(body)
    except ValueError:
        return 400, JSON, _encoded({"title": "Bad Request", "status": 400, "detail": "the body is not JSON"})
    status, resource = rest(system, method, path, parse_qs(query), content, user)
    return status, JSON, b"" if status == 204 else _encoded(resource)


def _encoded(resource: object) -> bytes:
    return json.dumps(resource).encode() + b"\n"


SOURCE = Path(__file__).with_name("factory.yaml")


def factory(known: NvueSchemaNode, chassis: CumulusSwitch) -> Tree:
    """The factory configuration of a release."""
    items = load(SOURCE.read_text(encoding="utf-8"))
    base = items[0]["set"] if isinstance(items, list) else {}
    on: Tree = {"state": "enabled"} if chassis.version >= BREAK else {"enable": "on"}
    dhcp: Tree = (
        {"ipv4": {"dhcp-client": {"state": "enabled", "set-hostname": "enabled"}}, "vrf": "mgmt"}
        if chassis.version >= BREAK
        else {"ip": {"address": {"dhcp": {}}, "vrf": "mgmt"}}
    )
    of_release: Tree = {
        "interface": {"eth0": dhcp},
        "system": {"api": on, "config": {"auto-save": on}, "ssh-server": on},
    }
    issues: list[Issue] = []
    tree = checked(known, base, issues)
    if issues or not isinstance(tree, dict):
        raise ValueError(f"{SOURCE.name}: {'; '.join(issue.message for issue in issues)}")
    return merged(known, tree, of_release)


def _port_leaves(reading: SwitchPortReading) -> Iterator[GnmiLeaf]:
    name, traffic = reading.name, reading.traffic
    packets = {"in-pkts": traffic.rx_packets, "out-pkts": traffic.tx_packets, "out-discards": traffic.tx_dropped}
    counters = {**gnmi.counters(reading), **packets}
    yield from gnmi.leaves(gnmi.interface(name, "state", "counters"), counters)
    changes = {"carrier-transitions": reading.carrier_changes}
    yield from gnmi.leaves(gnmi.interface(name, "ethernet", "state", "counters"), changes)
    blocks = {"rs-fec-uncorrectable-blocks": reading.fec.uncorrectable_codewords}
    yield from gnmi.leaves(gnmi.interface(name, "ethernet", "phy", "state"), blocks)
    for number, queue in enumerate(reading.queues):
        more = {"ecn-marked-pkts": queue.ecn_marked_packets, "no-buffer-uc-dropped-pkts": queue.dropped_packets}
        yield from gnmi.leaves(gnmi.queue(name, number), {**gnmi.queue_counters(queue), **more})
    for number, priority in enumerate(reading.priorities):
        at: Elem = ("switch-priority", {"name": str(number)})
        path = gnmi.qos_interface(name, ("state", {}), at, ("counters", {}))
        pauses = {"in-pause-pkts": priority.rx_pause, "out-pause-pkts": priority.tx_pause}
        yield from gnmi.leaves(path, pauses)


VERBS = {"action": action, "config": config, "set": change("set"), "show": show, "unset": change("unset")}


class Nvue(Personality):
    """Cumulus Linux with NVUE."""

    programs = ("nv",)
    login = "cumulus"
    prompt = "{user}@{host}:mgmt:~$ "
    https_port = 8765

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        if not isinstance(node.device, Switch):
            raise TypeError(f"{node.name} is not a switch")
        chassis = CumulusSwitch(node.device.model, node.device.version)
        known = schema(chassis.version)
        store = RevisionStore(node.saved / "nvue", known)
        self.system = NvueSystem(node, chassis, known, store, Applier(node, chassis, store))
        self.factory = factory(known, chassis)

    @classmethod
    def locks(cls, call: Call) -> bool:
        return call.arguments != ("config", "revision")

    @property
    def fail_apply_quietly(self) -> bool:
        """Lab fault: an apply fails but exits with 0, as real switches have done."""
        return self.system.applier.fails_quietly

    @fail_apply_quietly.setter
    def fail_apply_quietly(self, is_on: bool) -> None:
        self.system.applier.fails_quietly = is_on

    def provision(self, files: Mapping[str, str]) -> None:
        """Save startup.yaml over the factory configuration.

        The factory's DHCP client on eth0 is dropped if the file configures eth0, as on a switch that was set up before.
        """
        system = self.system
        system.store.load(self.factory)
        try:
            changes = read(system, files["startup.yaml"])
        except NvueCommandError as error:
            raise ConfigRefusedError(str(error).strip()) from error
        base = dict(self.factory)
        if child(changes.set, "interface", "eth0"):
            base["interface"] = {"eth0": {"type": "eth"}}
        tree = merged(system.known, base, changes.set)
        issues = broken(tree, system.chassis)
        if issues:
            raise ConfigRefusedError("\n".join(issue.message for issue in issues))
        system.store.provision(tree)

    def boot(self) -> None:
        self.system.store.load(self.factory)
        self.system.applier.boot()

    def run(self, call: Call) -> int:
        verb, words = (call.arguments[0], call.arguments[1:]) if call.arguments else ("", ())
        if verb not in VERBS:
            call.err(f"usage: nv {{{','.join(VERBS)}}} …\nError: invalid choice: '{verb}'\n")
            return 2
        try:
            return VERBS[verb](self.system, call, words)
        except NvueCommandError as error:
            call.err(str(error))
            return error.exit_code
        except OSError as error:
            call.err(f"Error: {os.strerror(error.errno or 0)}\n")
            return 1

    def https(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes, user: str = ""
    ) -> tuple[int, Mapping[str, str], bytes]:
        return answer(self.system, method, path, headers, body, user or self.login)

    def gnmi(self, target: str, path: tuple[Elem, ...]) -> Iterator[GnmiLeaf]:
        del target  # there is one tree
        yield from gnmi.below((leaf for reading in self.node.ports() for leaf in _port_leaves(reading)), path)

    def stop(self) -> None:
        """Cancel a pending confirmation, as a power-off does."""
        self.system.applier.stop()


PERSONALITY = Nvue
