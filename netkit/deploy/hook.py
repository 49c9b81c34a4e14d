"""The hook of a fabric: a program or a web service that is asked before the first write, and can refuse.

Only a complete, timely, well-formed `{"allow": true}` lets a deploy proceed; everything else refuses it.
"""

import http
import http.client
import json
import os
import re
import selectors
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from netkit import __version__
from netkit.access.settings import is_loopback
from netkit.deploy.approval import Provenance
from netkit.deploy.model import FAILED, Options
from netkit.deploy.policy import HookSettings
from netkit.errors import DeployError, Problem
from netkit.plan import Plan
from netkit.plan.model import approval
from netkit.private import without_secrets

FORMAT = 1
MOST_ANSWER_BYTES = 65_536
MOST_REASON = 500
TOUCHED = ("sessions", "links", "rails", "hosts", "gpus")
MOST_STDERR_BYTES = 4096
END_S, POLL_S = 5.0, 0.05
LENGTH = re.compile(r"[0-9]{1,18}")
"""A length that http.client does not take for a number is ignored by it, and a cut answer would count as complete."""


class HookError(DeployError):
    """The hook refuses the deploy, or does not answer properly."""

    exit_code = FAILED


def question(plan: Plan, lab: str, run: str, provenance: Provenance, options: Options) -> dict[str, Any]:
    """The document sent to a hook."""
    chosen = tuple(one for one in plan.changed if options.limit is None or one.name in options.limit)
    part = replace(plan, devices=chosen)
    return {
        "format": FORMAT,
        "fabric": plan.fabric,
        "lab": lab,
        "run": run,
        "plan": approval(plan),
        "risk": part.risk.word,
        "is_disruptive": part.blast.is_disruptive,
        "devices": [{"name": one.name, "role": one.role, "risk": one.risk.word} for one in chosen],
        "unreachable": [missed.name for missed in plan.unreachable],
        "touches": {name: len(getattr(part.blast, name)) for name in TOUCHED},
        "worst_state": {**asdict(plan.worst), "gone_pairs": plan.gone.pairs},
        "options": asdict(options),
        **{key: value for key, value in provenance.plain().items() if not key.startswith("hook")},
    }


def ask(hook: HookSettings, document: Mapping[str, Any], folder: Path, token: str = "") -> str:
    """Ask a hook and return its reason for allowing; raise HookError for any answer but a clear yes."""
    data = json.dumps(document).encode()
    if hook.command is not None:
        answer = _ask_command(hook.command, data, folder, hook.timeout_s)
    else:
        answer = _ask_url(hook, data, folder, token)
    return _reason(answer)


def _reason(answer: bytes) -> str:
    try:
        found = json.loads(answer.decode(), object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        raise _failed("does not answer with JSON") from None
    allow, reason = (found.get("allow"), found.get("reason", "")) if isinstance(found, dict) else (None, "")
    if not isinstance(allow, bool) or not isinstance(reason, str):
        raise _failed('does not answer {"allow": true or false, "reason": "…"}')
    reason = " ".join(reason.split())[:MOST_REASON]
    if not allow:
        raise HookError(Problem(f"the hook refuses: {reason or 'no reason given'}", "nothing was changed"))
    return reason


def _without_repeats(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an answer with a repeated key."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError
    return found


def _failed(what: str, remedy: str = "fix it, or see hook in deploy.yaml") -> HookError:
    return HookError(Problem(f"the hook {what}, so nothing was changed", remedy))


def _ask_command(command: Sequence[str], data: bytes, folder: Path, timeout_s: float) -> bytes:
    with tempfile.TemporaryFile() as stdin:
        stdin.write(data)
        stdin.seek(0)
        try:
            child = subprocess.Popen(  # noqa: S603 (the user's own program, without a shell)
                [*command],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                cwd=folder,
                env=without_secrets(),
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise _failed(f"{command[0]} cannot be run ({why})") from None
    try:
        answer, stderr = _output_of(child, timeout_s)
    finally:
        _stop(child)
    if child.returncode:
        how = f"signal {-child.returncode}" if child.returncode < 0 else f"exit code {child.returncode}"
        last = " ".join(stderr.decode(errors="replace").strip().splitlines()[-1:])[:MOST_REASON]
        raise _failed(f"ended with {how}{f' ({last})' if last else ''}")
    return answer


def _output_of(child: subprocess.Popen[bytes], timeout_s: float) -> tuple[bytes, bytes]:
    """The hook's stdout, and the end of its stderr."""
    deadline_s = time.monotonic() + timeout_s
    outputs = {stream: bytearray() for stream in (child.stdout, child.stderr) if stream is not None}
    with selectors.DefaultSelector() as ready:
        for stream in outputs:
            os.set_blocking(stream.fileno(), False)
            ready.register(stream, selectors.EVENT_READ)
        while not _has_ended(child):
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                raise _failed(f"gives no answer within {timeout_s:g} s")
            found = [key.fileobj for key, _ in ready.select(min(left_s, POLL_S))]
            for stream in [one for one in outputs if one in found]:
                if not _read_available(child, stream, outputs[stream]):
                    ready.unregister(stream)
    _kill_group(child)  # before the rest is read: its children must stop writing
    for stream, buffer in outputs.items():
        while _read_available(child, stream, buffer):
            pass
    stdout, stderr = map(bytes, outputs.values())
    return stdout, stderr


def _has_ended(child: subprocess.Popen[bytes]) -> bool:
    """Whether a hook has ended; not by pidfd_open, which old kernels and some containers refuse."""
    try:
        return os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        raise _failed(
            "ended with an unknown exit code", "SIGCHLD is ignored: do not ignore it in your script"
        ) from None


def _read_available(child: subprocess.Popen[bytes], stream: IO[bytes], buffer: bytearray) -> bool:
    """Read what is available; False at the end of the stream or when nothing is available now."""
    try:
        piece = os.read(stream.fileno(), MOST_ANSWER_BYTES)
    except BlockingIOError:
        return False
    buffer += piece
    if stream is child.stdout and len(buffer) > MOST_ANSWER_BYTES:
        raise _failed(f"answers more than {MOST_ANSWER_BYTES:,} bytes")
    if stream is child.stderr:
        del buffer[:-MOST_STDERR_BYTES]
    return bool(piece)


def _stop(child: subprocess.Popen[bytes]) -> None:
    """Stop a hook in any state; one that runs as another user may survive."""
    _kill_group(child)
    with suppress(subprocess.TimeoutExpired):
        child.wait(END_S)
    for stream in (child.stdout, child.stderr):
        if stream is not None:
            stream.close()


def _kill_group(child: subprocess.Popen[bytes]) -> None:
    """Kill a hook and its children: until the process is waited for, its group id cannot be reused."""
    if child.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: only the address in deploy.yaml may allow a deploy."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirect as the answer."""


def _ask_url(hook: HookSettings, data: bytes, folder: Path, token: str) -> bytes:
    """Ask a web service, in a thread so that name resolution and a trickling answer cannot exceed the time limit."""
    answers: list[bytes] = []
    failures: list[DeployError] = []

    def post() -> None:
        try:
            answers.append(_posted(hook, data, folder, token))
        except DeployError as error:
            failures.append(error)

    worker = threading.Thread(target=post, daemon=True)
    worker.start()
    worker.join(hook.timeout_s)
    if failures:
        raise failures[0]
    if not answers:
        raise _failed(f"gives no answer within {hook.timeout_s:g} s")
    return answers[0]


def _posted(hook: HookSettings, data: bytes, folder: Path, token: str) -> bytes:
    url = hook.url or ""
    headers = {"Content-Type": "application/json", "User-Agent": f"netkit/{__version__}"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    proxies = urllib.request.ProxyHandler({} if is_loopback(urlsplit(url).hostname or "") else None)
    try:
        trust = ssl.create_default_context(cafile=str(folder / hook.ca_file) if hook.ca_file else None)
        opener = urllib.request.build_opener(proxies, urllib.request.HTTPSHandler(context=trust), _NoRedirect())
        request = urllib.request.Request(url, data, headers, method="POST")  # noqa: S310 (see HookSettings)
        with opener.open(request, timeout=hook.timeout_s) as answer:
            if answer.status != http.HTTPStatus.OK:
                raise _failed(f"answers with status {answer.status}")
            lengths = sorted({one.strip(" \t") for one in answer.headers.get_all("Content-Length", [])})
            if len(lengths) > 1 or not all(map(LENGTH.fullmatch, lengths)):
                raise _failed(
                    f"answers with Content-Length {', '.join(lengths)[:MOST_REASON]!r}, not a number of bytes"
                )
            found: bytes = answer.read(MOST_ANSWER_BYTES + 1)
            is_cut_off = bool(answer.length) and len(found) <= MOST_ANSWER_BYTES
    except urllib.error.HTTPError as error:
        error.close()
        what = f"a redirect ({error.code})" if 300 <= error.code < 400 else f"status {error.code}"
        raise _failed(f"answers with {what}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        raise _failed(f"cannot be reached: {_why(cause)}") from None
    if is_cut_off:
        raise _failed("closes the connection in the middle of its answer")
    if len(found) > MOST_ANSWER_BYTES:
        raise _failed(f"answers more than {MOST_ANSWER_BYTES:,} bytes")
    return found


def _why(cause: object) -> str:
    """The reason without the address, which may be confidential."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({cause.verify_message})"
    return cause.strerror if isinstance(cause, OSError) and cause.strerror else type(cause).__name__
