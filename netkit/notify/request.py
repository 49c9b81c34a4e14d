"""POST to a URL within a time limit: no redirects, no proxy for this machine, no URL in an error message."""

import http.client
import ipaddress
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from netkit import __version__
from netkit.errors import NotifyError, Problem
from netkit.notify.settings import checked_url

SEND_S = 20.0
"""The time limit for sending one message."""


def within(seconds: float, work: Callable[[], None]) -> None:
    """Run something in another thread; NotifyError if it takes longer, whatever happens to it then."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    worker = threading.Thread(target=guarded, daemon=True)
    worker.start()
    worker.join(seconds)
    if worker.is_alive():
        raise NotifyError(Problem(f"no answer within {seconds:g} s", "check whether it can be reached from here"))
    if failures:
        raise failures[0]


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """The TLS context that verifies a receiver."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        why = error.strerror or "it contains no certificate"
        raise NotifyError(Problem(f"{ca_file} cannot be read: {why}", "check ca_file in notify.yaml")) from None


class RefusedError(NotifyError):
    """The receiver refuses this message; later ones may be accepted."""


STEP_S = 10.0
MOST_ANSWER_BYTES = 65_536
REFUSED = frozenset({400, 413, 422})
"""Status codes about the message itself: malformed, too large, or unprocessable."""
REMEDIES = {
    401: "check its token",
    403: "check its token or address",
    404: "check its address",
    410: "check its address",
}
USUAL_REMEDY = "see the receiver's log"
CA = "name the certificates to trust with ca_file in notify.yaml"


@dataclass(frozen=True, slots=True)
class Request:
    """What to post, and where."""

    url: str = field(repr=False)
    data: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust: ssl.SSLContext | None = None


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: a new owner of an address must not receive messages for the old one."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """A redirect as the answer."""


def post(message: Request) -> None:
    """Send a POST request; NotifyError if it is not accepted."""
    try:
        within(SEND_S, lambda: _post(message))
    except urllib.error.HTTPError as error:
        error.close()
        if 300 <= error.code < 400:
            what = f"it answers with a redirect ({error.code})"
            raise NotifyError(Problem(what, "give the address it redirects to, if that is right")) from None
        kind = RefusedError if error.code in REFUSED else NotifyError
        raise kind(Problem(f"it answers with status {error.code}", REMEDIES.get(error.code, USUAL_REMEDY))) from None
    except urllib.error.URLError as error:
        raise NotifyError(_unreached(error.reason)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotifyError(_unreached(error)) from None


def _post(message: Request) -> None:
    parts = checked_url(message.url)
    headers = {"Content-Type": "application/json", "User-Agent": f"netkit/{__version__}", **message.headers}
    request = urllib.request.Request(message.url, message.data, headers, method="POST")  # noqa: S310 (checked_url)
    proxies = urllib.request.ProxyHandler({}) if _is_here(parts.hostname or "") else urllib.request.ProxyHandler()
    https = urllib.request.HTTPSHandler(context=message.trust)
    with urllib.request.build_opener(proxies, https, _Unredirected()).open(request, timeout=STEP_S) as answer:
        answer.read(MOST_ANSWER_BYTES)


def _is_here(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost" or host.lower().endswith(".localhost")


def _unreached(reason: object) -> Problem:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Problem(f"its certificate is not trusted: {reason.verify_message}", CA)
    if isinstance(reason, TimeoutError):
        return Problem(f"no answer within {STEP_S:g} s", "check whether it can be reached from here")
    if isinstance(reason, ValueError) and not isinstance(reason, OSError):
        return Problem("its address cannot be used", "write http://HOST/PATH or https://HOST/PATH")
    why = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
    return Problem(f"it cannot be reached: {why}", "check its address, and whether it runs")
