"""NVUE's REST API: revisions and the configuration tree."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote

from netkit.lab.personalities.nvue.command_line import look_up
from netkit.lab.personalities.nvue.document import opened, read
from netkit.lab.personalities.nvue.revision import NvueRevision, UnknownRevisionError
from netkit.lab.personalities.nvue.schema import Issue, checked
from netkit.lab.personalities.nvue.show import included, only
from netkit.lab.personalities.nvue.system import LOGIN, NvueCommandError, NvueSystem, complaint, has_account
from netkit.lab.personalities.nvue.tree import Tree, child, difference, has, hidden, is_on, nested, overlay

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
