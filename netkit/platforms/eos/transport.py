"""eAPI over HTTPS. The certificate is always either pinned or verified against the system's authorities."""

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
from netkit.platforms.view import ENDLESS, Reply

PORT, PATH = 443, "/command-api"

logging.getLogger("pyeapi.eapilib").setLevel(logging.CRITICAL + 1)  # it logs tracebacks and complete requests


class PinnedLine(http.client.HTTPSConnection):
    """An HTTPS connection that verifies the certificate before anything is sent."""

    def __init__(self, device: str, host: str, port: int, timeout_s: float, certificate: str) -> None:
        self._tls = ssl.create_default_context()
        if certificate:  # pinned: without the authorities, which take 15 ms to load
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            self._tls.check_hostname = False
            self._tls.verify_mode = ssl.CERT_NONE
        super().__init__(host, port, timeout=timeout_s, context=self._tls)
        self._device, self._certificate = device, certificate.lower()
        self._is_hung_up = False

    def connect(self) -> None:
        """Connect; AccessError if the certificate is not the trusted one, OSError if `hang_up` was called meanwhile."""
        try:
            http.client.HTTPConnection.connect(self)
            line = self._tls.wrap_socket(self.sock, server_hostname=self.host, do_handshake_on_connect=False)
            self.sock = line  # before the handshake, so that hang_up can end it
            self._raise_if_hung_up()
            line.do_handshake()
        except ssl.SSLCertVerificationError as error:
            what = f"{self._device}: its certificate is not trusted: {error.verify_message}"
            raise AccessError(
                Problem(what, "run netkit trust, or install a certificate of a known authority")
            ) from None
        except OSError:
            self._raise_if_hung_up()
            raise
        shown = self.sock.getpeercert(binary_form=True) or b""
        if self._certificate and not hmac.compare_digest(hashlib.sha256(shown).hexdigest(), self._certificate):
            self.close()
            what = f"{self._device}: its certificate is not the trusted one"
            raise AccessError(
                Problem(what, "this may be a man in the middle: find out why it changed, then run netkit trust")
            )
        self._raise_if_hung_up()

    def _raise_if_hung_up(self) -> None:
        if self._is_hung_up:
            self.close()
            raise ConnectionAbortedError(errno.ECONNABORTED, "the connection was closed") from None

    def hang_up(self) -> None:
        """End a request that another thread waits for, or is about to send."""
        self._is_hung_up = True  # first, because the socket may not exist yet
        line = self.sock
        if line is not None:
            with contextlib.suppress(OSError, ValueError):
                socket.socket.shutdown(line, socket.SHUT_RDWR)  # no TLS shutdown: another thread is using it


class PinnedEapi(EapiConnection):  # type: ignore[misc]
    """pyeapi's connection over `PinnedLine`. NAPALM passes the optional arguments by name."""

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
"""Time limit of a single command after the request with several did not end."""
MOST_ENDLESS = 3
"""So many of them in a row that do not end show that the switch hangs."""
INVALID_PARAMS = -32602
Answer = Mapping[str, Any]
Post = Callable[[str, float], Answer]
"""(request, seconds) → eAPI's answer, including errors. TimeoutError without an answer in time."""


def ask(post: Post, commands: Sequence[str], timeout_s: float, enable: str) -> tuple[Reply, ...]:
    """Run commands and return a reply to each, in order. AccessError only without any reply."""
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
    """Commands with one output format, which applies to a whole request."""

    def __init__(self, post: Post, form: str, enable: str) -> None:
        self._post, self._form = post, form
        self._enable = {"cmd": "enable", "input": enable} if enable else "enable"
        self._goes_on = True
        """Whether to request that EOS continues after a command that fails; old releases do not support it."""

    def replies(self, commands: Sequence[str], timeout_s: float) -> Iterator[Reply]:
        """Yield the replies. Where EOS stops at a failure, the rest is sent again."""
        left = list(commands)
        while left:
            try:
                answer = self._post(self._request(left), timeout_s)
            except TimeoutError:
                if len(left) == 1:
                    yield _failed(ENDLESS)
                    return
                endless = 0
                for command in left:
                    if endless == MOST_ENDLESS:
                        yield _failed(f"not answered: {MOST_ENDLESS} others in a row do not end")
                        continue
                    for reply in self.replies([command], min(timeout_s, ALONE_S)):
                        endless = endless + 1 if reply.failure == ENDLESS else 0
                        yield reply
                return
            if self._goes_on and _error(answer).get("code") == INVALID_PARAMS:
                self._goes_on = False
                continue
            error = _error(answer)
            results = answer.get("result") if "error" not in answer else error.get("data")
            results = results[1 : len(left) + 1] if isinstance(results, list) else []
            found = [self._reply(one, is_error="error" in answer) for one in results]
            # A failure that does not name its command belongs to the first one.
            found = found or [_failed(str(error.get("message") or "no answer"))]
            yield from found
            left = left[len(found) :]

    def _request(self, commands: Sequence[str]) -> str:
        cmds = [
            {"cmd": command, "revision": REVISIONS[command]} if command in REVISIONS else command
            for command in commands
        ]
        params = {"version": 1, "cmds": [self._enable, *cmds], "format": self._form}
        if self._goes_on:
            params["stopOnError"] = False
        return json.dumps({"jsonrpc": "2.0", "method": "runCmds", "params": params, "id": "netkit"})

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
