"""eAPI over HTTPS to a switch whose certificate is pinned, or verified by the authorities; never taken as it comes."""

import contextlib
import errno
import hashlib
import hmac
import http.client
import json
import logging
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pyeapi.eapilib import EapiConnection

from netkit.errors import AccessError, Problem
from netkit.platforms.eos.facts.interface import IN_WORDS, REVISIONS
from netkit.platforms.view import Reply

PORT, PATH = 443, "/command-api"

logging.getLogger("pyeapi.eapilib").setLevel(logging.CRITICAL + 1)  # it logs tracebacks, and whole requests


class PinnedLine(http.client.HTTPSConnection):
    """One HTTPS connection that looks at the certificate before anything is sent."""

    def __init__(self, device: str, host: str, port: int, timeout_s: float, certificate: str) -> None:
        self._tls = _context(certificate)
        super().__init__(host, port, timeout=timeout_s, context=self._tls)
        self._device, self._certificate = device, certificate.lower()
        self._is_hung_up = False

    def connect(self) -> None:
        """Connect; AccessError when the certificate is not the trusted one, OSError when it was hung up meanwhile."""
        try:
            self._agree()
        except ssl.SSLCertVerificationError as error:
            what = f"{self._device}: its certificate is not to be trusted: {error.verify_message}"
            raise AccessError(Problem(what, "run netkit trust, or give it one by a known authority")) from None
        except OSError:
            self._heed()
            raise
        shown = self.sock.getpeercert(binary_form=True) or b""
        if self._certificate and not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self._certificate):
            self.close()
            what = f"{self._device}: its certificate is not the trusted one"
            raise AccessError(
                Problem(what, "somebody may be listening in: find out why it changed, then run netkit trust")
            )
        self._heed()

    def _agree(self) -> None:
        """Connect and agree on TLS, by the socket that hang_up knows from the first byte on."""
        http.client.HTTPConnection.connect(self)
        line = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
        self.sock = line
        self._heed()
        line.do_handshake()

    def _heed(self) -> None:
        if self._is_hung_up:
            self.close()
            raise ConnectionAbortedError(errno.ECONNABORTED, "it was hung up") from None

    def hang_up(self) -> None:
        """End an answer that another thread waits for, or is about to wait for."""
        self._is_hung_up = True  # before the socket, which may not be there yet
        line = self.sock
        if line is not None:
            with contextlib.suppress(OSError, ValueError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)  # of TLS nothing is told: another thread is at it


def _context(certificate: str) -> ssl.SSLContext:
    if not certificate:
        return ssl.create_default_context()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the authorities, which take 15 ms to read
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


class PinnedEapi(EapiConnection):  # type: ignore[misc]
    """pyeapi's connection over such a line. NAPALM hands it the optional arguments it names."""

    def __init__(
        self,
        host: str,
        port: int | None = None,
        path: str | None = None,
        username: str = "",
        password: str = "",
        timeout: float = 60,
        certificate: str = "",
        device: str = "",
        **_: Any,
    ) -> None:
        super().__init__()
        self.path = path or PATH
        self.transport = PinnedLine(device or host, host, int(port or PORT), float(timeout), certificate)
        self.authentication(username, password)


ALONE_S = 10.0
"""How long a command may take alone after the request it was part of did not end."""
INVALID_PARAMS = -32602
Answer = Mapping[str, Any]
Post = Callable[[str, float], Answer]
"""Request, seconds → the answer as eAPI gives it, errors too. TimeoutError when there is none in time."""


def ask(post: Post, commands: Sequence[str], timeout_s: float, enable: str) -> tuple[Reply, ...]:
    """Return the answer to each command, in order. AccessError only when there is none at all."""
    answers: dict[str, Reply] = {}
    for form in ("json", "text"):
        wanted = [command for command in dict.fromkeys(commands) if (command in IN_WORDS) == (form == "text")]
        try:
            answers.update(zip(wanted, _Batch(post, form, enable).replies(wanted, timeout_s), strict=False))
        except AccessError as error:
            if not answers:
                raise
            answers |= {one: _failed(str(error)) for one in wanted if one not in answers}
    return tuple(answers[command] for command in commands)


def _failed(why: str) -> Reply:
    return Reply("", why, time.time())


class _Batch:
    """Commands whose answers have one form: a request has only one."""

    def __init__(self, post: Post, form: str, enable: str) -> None:
        self._post, self._form = post, form
        self._enable = {"cmd": "enable", "input": enable} if enable else "enable"
        self._goes_on = True
        """Whether the request may ask EOS to go on behind a command that fails; old releases do not know how."""

    def replies(self, commands: Sequence[str], timeout_s: float) -> Iterator[Reply]:
        """Yield the answers. Where EOS stops at a failure, the rest is asked again."""
        left = list(commands)
        while left:
            try:
                answer = self._post(self._request(left), timeout_s)
            except TimeoutError:
                if len(left) == 1:
                    yield _failed("does not end")
                    return
                yield from self._alone(left, min(timeout_s, ALONE_S))
                return
            if self._goes_on and _error(answer).get("code") == INVALID_PARAMS:
                self._goes_on = False
                continue
            found = self._read(answer, len(left))
            yield from found
            left = left[len(found) :]

    def _alone(self, commands: Sequence[str], timeout_s: float) -> Iterator[Reply]:
        for command in commands:
            yield from self.replies([command], timeout_s)

    def _request(self, commands: Sequence[str]) -> str:
        cmds = [
            {"cmd": command, "revision": REVISIONS[command]} if command in REVISIONS else command
            for command in commands
        ]
        params = {"version": 1, "cmds": [self._enable, *cmds], "format": self._form}
        if self._goes_on:
            params["stopOnError"] = False
        return json.dumps({"jsonrpc": "2.0", "method": "runCmds", "params": params, "id": "netkit"})

    def _read(self, answer: Answer, asked: int) -> list[Reply]:
        """Return at least one answer: a failure that says not of what is the first command's."""
        error = _error(answer)
        found = answer.get("result") if "error" not in answer else error.get("data")
        results = found[1 : asked + 1] if isinstance(found, list) else []
        replies = [self._reply(one, is_error="error" in answer) for one in results]
        return replies or [_failed(str(error.get("message") or "no answer"))]

    def _reply(self, result: object, *, is_error: bool) -> Reply:
        shown = result if isinstance(result, dict) else {}
        errors = shown.get("errors")
        if is_error and isinstance(errors, list):
            return _failed("; ".join(map(str, errors)) or "refused")
        text = json.dumps(shown) if self._form == "json" else str(shown.get("output", ""))
        return Reply(text, at_s=time.time())


def _error(answer: Answer) -> Answer:
    error = answer.get("error")
    return error if isinstance(error, dict) else {}
