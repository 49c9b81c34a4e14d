"""A persistent HTTPS connection to a switch, with a pinned certificate or one that an authority signed."""

import base64
import hashlib
import hmac
import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from netkit.errors import AccessError, DeviceError, Problem
from netkit.platforms.ssh import UNREACHABLE, SshTarget

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
