"""NVUE's REST resources as a pure handler: method, path, query and body in, status and JSON out."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, unquote

from netkit.lab.personalities.nvue.command_line import look_up
from netkit.lab.personalities.nvue.document import opened, read
from netkit.lab.personalities.nvue.revision import NvueRevision, UnknownRevisionError
from netkit.lab.personalities.nvue.schema import Issue, checked
from netkit.lab.personalities.nvue.show import included, only
from netkit.lab.personalities.nvue.system import LOGIN, NvueCommandError, NvueSystem, complaint, exists
from netkit.lab.personalities.nvue.tree import Tree, Value, child, difference, has, hidden, is_on

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
    """There is no such resource."""


@dataclass(frozen=True, slots=True)
class NvueRequest:
    """One request: the words of its path, its query, its body and who sent it."""

    path: tuple[str, ...]
    query: Mapping[str, Sequence[str]]
    body: object
    user: str

    def asked(self, name: str) -> str:
        """Return the first value of a query parameter."""
        return next(iter(self.query.get(name, ())), "")


def rest(
    system: NvueSystem, method: str, path: str, query: Mapping[str, Sequence[str]], body: object, user: str = "cumulus"
) -> Answer:
    """Answer one request. A body is parsed JSON, or text for lines of `nv set`; a query is as `parse_qs` has it."""
    if path != ROOT and not path.startswith(f"{ROOT}/"):
        return _refused(404, "Not Found", path)
    words = tuple(unquote(word) for word in path.removeprefix(ROOT).split("/") if word)
    request = NvueRequest(words, query, body, user)
    resource = REVISIONS if words[:1] == ("revision",) else TREE
    if method not in resource:
        return _refused(405, "Method Not Allowed", method)
    try:
        return resource[method](system, request)
    except (NvueCommandError, NotFoundError, OSError, UnknownRevisionError) as error:
        if isinstance(error, UnknownRevisionError):
            return _refused(404, "Not Found", f"revision {error} does not exist")
        if isinstance(error, OSError):
            return _refused(500, "Internal Server Error", error.strerror or "")
        is_missing = isinstance(error, NotFoundError) or "does not exist" in str(error)
        return _refused(404 if is_missing else 400, "Not Found" if is_missing else "Bad Request", str(error).strip())


def _refused(status: int, title: str, detail: str) -> Answer:
    return status, {"title": title, "status": status, "detail": detail, "type": "about:blank"}


def _shown(revision: NvueRevision) -> Tree:
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
        return 200, {str(number): _shown(found) for number, found in sorted(system.store.revisions.items())}
    return 200, _shown(_revision(system, request.path[1]))


def _revision(system: NvueSystem, name: str) -> NvueRevision:
    found = system.store.find(name)
    if found is None:
        raise UnknownRevisionError(name)
    return found


def _begin(system: NvueSystem, request: NvueRequest) -> Answer:
    fresh = system.store.begin(request.user, KIND)
    return 200, {str(fresh.number): _shown(fresh)}


def _change_state(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = _revision(system, request.path[1] if len(request.path) > 1 else "")
    wanted = request.body if isinstance(request.body, dict) else {}
    if wanted.get("state") == "save":
        if system.applier.confirmation:
            raise NvueCommandError("a revision waits to be confirmed")
        system.applier.save()
        return 200, {**_shown(revision), "state": "saved"}
    if wanted.get("state") != "apply":
        raise NvueCommandError(f"'{wanted.get('state')}' is not one of apply, save")
    if revision.state == "ays" and system.applier.confirmation:
        return 200, _shown(system.applier.confirm() or revision)
    if _under(wanted, "auto-prompt").get("ays") != "ays_yes":
        return 200, {**_shown(revision), "state": "ays"}
    seconds = _under(wanted, "state-controls").get("confirm", 0)
    ended = system.applier.apply(revision, "", float(seconds) if isinstance(seconds, int) else 0)
    return 200, _shown(ended)


def _under(body: Mapping[str, object], key: str) -> Mapping[str, object]:
    found = body.get(key)
    return found if isinstance(found, dict) else {}


def _get(system: NvueSystem, request: NvueRequest) -> Answer:
    name, other = request.asked("rev") or "operational", request.asked("diff")
    patterns = request.query.get("include", ())
    if other:
        left, right = (hidden(system.store.tree(one)) for one in (name, other))
        found = difference(right, left)
        both = _over(found.removed, found.added)
        return 200, only(
            (child(both, *request.path[:-1]).get(request.path[-1], {}) if request.path else both), patterns
        )

    def whole() -> object:
        return look_up(system, request.path, name, request.asked("view"), request.user)

    is_state = bool(patterns) and name == "operational"
    return 200, included(system, request.path, patterns, whole) if is_state else only(whole(), patterns)


def _over(base: Tree, patch: Tree) -> Tree:
    result = dict(base)
    for key, value in patch.items():
        before = result.get(key)
        result[key] = _over(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


def _pending(system: NvueSystem, request: NvueRequest) -> NvueRevision:
    found = _revision(system, request.asked("rev"))
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
    given = checked(system.known, _wrapped(request.path, request.body), issues)
    if issues or not isinstance(given, dict):
        raise complaint(issues or [Issue("", "the body is not an object", "schema")])
    changed = system.store.change(revision, opened(system, given))
    made = hidden(difference(revision.tree, changed.tree).added)
    return 200, made if system.chassis.version >= NO_BODY_SINCE else hidden(changed.tree)


def _wrapped(path: Sequence[str], body: object) -> object:
    for word in reversed(path):
        body = {word: body}
    return body


def _delete(system: NvueSystem, request: NvueRequest) -> Answer:
    revision = _pending(system, request)
    if request.path:
        gone: Value = None
        for word in reversed(request.path):
            gone = {word: gone}
        issues: list[Issue] = []
        given = checked(system.known, gone, issues)
        if issues:
            raise NotFoundError("The requested item does not exist.")
        system.store.change(revision, given if isinstance(given, dict) else {})
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
    """Answer one request; nobody answers while the configuration has the interface off."""
    if has(system.applied, "system", "api") and not is_on(system.applied, "system", "api", default=True):
        return 503, {"Content-Type": "text/plain"}, b"the API is not enabled\n"
    if user == LOGIN and not exists(system.applied):
        return 401, {"WWW-Authenticate": 'Basic realm="NVUE"'}, b""
    path, _, query = target.partition("?")
    try:
        given = _body(headers, body)
    except ValueError:
        return 400, JSON, _bytes({"title": "Bad Request", "status": 400, "detail": "the body is not JSON"})
    status, shown = rest(system, method, path, parse_qs(query), given, user)
    return status, JSON, b"" if status == 204 else _bytes(shown)


def _body(headers: Mapping[str, str], body: bytes) -> object:
    kind = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    if not body:
        return None
    text = body.decode("utf-8")
    found: object = text if kind.startswith("text/plain") else json.loads(text)
    return found


def _bytes(shown: object) -> bytes:
    return json.dumps(shown).encode() + b"\n"
