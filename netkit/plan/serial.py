"""A plan as JSON, and back: exactly the same plan, or an error; and pairs of configurations compared equal before."""

import hashlib
import json
import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from netkit.errors import PlanError, Problem
from netkit.plan.model import SCHEMA, Blast, Partial, Plan, ReachabilityLoss, Step
from netkit.platforms.change import Change, Risk, risk_of
from netkit.platforms.routing import IpNetwork, RetainedRouting

AGAIN = "make the plan again"

Document = dict[str, Any]


def write(plan: Plan) -> str:
    """A plan as JSON with its digest, one device per line."""
    return "\n".join(_lines({**_document(plan), "digest": digest(plan)})) + "\n"


def digest(plan: Plan) -> str:
    """The digest of a whole plan: what was approved is what is deployed."""
    return _digest(_document(plan))


def read(text: str, file: str = "") -> Plan:
    """Parse a plan; refuse one of a newer netkit, or one that was edited."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise PlanError(Problem("is not a plan", AGAIN, file=file)) from None
    schema = document.get("schema") if isinstance(document, dict) else None
    if type(schema) is not int:
        raise PlanError(Problem("is not a plan", AGAIN, file=file))
    if schema < SCHEMA:
        message = f"is of an older netkit: schema {schema}, which has no order of its devices"
        raise PlanError(Problem(message, AGAIN, file=file))
    if schema > SCHEMA:
        message = f"is of a newer netkit: schema {schema}, this one reads up to {SCHEMA}"
        raise PlanError(Problem(message, "use that netkit, or make the plan again with this one", file=file))
    expected = document.pop("digest", "")
    if _digest(document) != expected:
        raise PlanError(Problem("was changed after it was made", AGAIN, file=file))
    plan = _plan(document)
    if plan is None or digest(plan) != expected:  # the document holds more, or something else, than a plan
        raise PlanError(Problem("is not a whole plan", AGAIN, file=file))
    return plan


@cache
def _adapter() -> TypeAdapter[Plan]:
    """Build the adapter on first use: that is slow, and most commands only write plans."""
    return TypeAdapter(Plan)


def _plan(document: Document) -> Plan | None:
    """The plan of a document; None if something is missing or wrong."""
    try:
        staged = [one[stage] for one in document["bridges"] for stage in ("first", "then")]
        for device in (*document["devices"], *staged):
            for judged in (device, device["way"], *device["changes"]):
                judged["risk"] = risk_of(judged["risk"])
        return _adapter().validate_python(document)
    except (ValidationError, LookupError, TypeError, AttributeError, RecursionError):
        return None


def _digest(document: Document) -> str:
    text = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _lines(document: Document) -> Iterator[str]:
    devices = document.pop("devices")
    head = json.dumps(document, indent=1)
    yield head[: head.rindex("\n")] + ","
    yield ' "devices": ['
    for number, device in enumerate(devices, 1):
        yield f"  {json.dumps(device)}{',' if number < len(devices) else ''}"
    yield " ]"
    yield "}"


def _document(plan: Plan) -> Document:
    head = {"schema": plan.schema, "netkit": plan.netkit, "fabric": plan.fabric}
    return head | {key: value for key, value in _plain(plan).items() if key not in head}


def _plain(value: Any) -> Any:
    """A value in JSON form, with risks as words."""
    if isinstance(value, Change):
        return {
            "path": list(value.path),
            "running": value.running,
            "intended": value.intended,
            "risk": value.risk.word,
            "note": value.note,
        }
    if isinstance(value, Risk):
        return value.word
    if is_dataclass(value) and not isinstance(value, type):
        found = {item.name: _plain(getattr(value, item.name)) for item in fields(value) if item.compare}
        if isinstance(value, RetainedRouting) and not value.entries:
            del found["entries"]  # as it was written before there were any: such a plan can still be read
        if isinstance(value, Blast) and not value.moved:
            del found["moved"]
        if isinstance(value, ReachabilityLoss):
            found = {key: one for key, one in found.items() if one or key not in {"rail_pairs", "is_only_ipv6"}}
        if isinstance(value, Step) and not value.narrowed:
            del found["narrowed"]
        if isinstance(value, Partial):
            found = {key: one for key, one in found.items() if one or key in {"loss", "missing"}}
        if isinstance(value, Plan) and not value.unknown:
            del found["unknown"]
        return found
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, IpNetwork):
        return str(value)
    return value


FILE = "plan-pairs"
MOST = 50_000
LARGEST_BYTES = 64 << 20
TITLE = b"netkit pairs 3"
DIGEST = rb"[0-9a-f]{64}"
WHOLE = re.compile(rb"(?:%(digest)s %(digest)s:[0-9]{1,7}\n)*" % {b"digest": DIGEST})
COMPARING = ("platforms", "plan")
"""The packages whose code compares configurations."""


def load(folder: Path) -> dict[str, str]:
    """The cached pairs of a folder; none if there are none, or none that can be trusted."""
    try:
        content = _private(folder)
    except OSError:
        return {}
    head, _, body = content.partition(b"\n")
    if head != _head(body) or not WHOLE.fullmatch(body):
        return {}
    digests = iter(body.decode("ascii").split())
    return dict(zip(digests, digests, strict=True))


def save(folder: Path, pairs: Mapping[str, str]) -> None:
    """Cache pairs in the user's own folder, the newest if there are too many; errors are ignored."""
    newest = islice(pairs.items(), max(0, len(pairs) - MOST), None)
    body = "".join(f"{pair} {content}\n" for pair, content in newest).encode()
    with suppress(OSError):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=FILE)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(_head(body) + b"\n" + body)
            Path(name).replace(folder / FILE)
        except OSError:
            Path(name).unlink(missing_ok=True)


@cache
def code() -> str:
    """A digest of the comparing code: results of other code do not count."""
    package = Path(__file__).parent.parent
    whole = hashlib.sha256()
    for file in sorted(file for name in COMPARING for file in (package / name).rglob("*.py")):
        whole.update(f"{file.relative_to(package)}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return whole.hexdigest()


def _head(body: bytes) -> bytes:
    """The first line of the file: which code wrote it, and the digest of the body."""
    return b" ".join((TITLE, code().encode(), hashlib.sha256(body).hexdigest().encode()))


def _private(folder: Path) -> bytes:
    """The content of the file; nothing if another user could have written it, or it is not a file."""
    if not _is_private(folder.lstat(), stat.S_ISDIR):
        return b""
    with open(folder / FILE, "rb", opener=_opened) as stream:
        return stream.read(LARGEST_BYTES) if _is_private(os.fstat(stream.fileno()), stat.S_ISREG) else b""


def _opened(path: str, flags: int) -> int:
    return os.open(
        path, flags | os.O_NOFOLLOW | os.O_NONBLOCK
    )  # follow no symlink, and do not wait for the other end of a pipe


def _is_private(found: os.stat_result, is_kind: Callable[[int], bool]) -> bool:
    """Whether only the user can write here."""
    others_write = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return is_kind(found.st_mode) and found.st_uid == os.geteuid() and not others_write
