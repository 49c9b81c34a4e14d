"""Posting to a URL, within a time limit: no redirects, no proxy for this machine itself, no URL in an error message."""

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
"""How long sending one message may take in all."""


def within(seconds: float, work: Callable[[], None]) -> None:
    """Do something in another thread; NotifyError when it takes longer, whatever becomes of it then."""
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
        raise NotifyError(Problem(f"no answer within {seconds:g} s", "see whether it can be reached from here"))
    if failures:
        raise failures[0]


def trusted(ca_file: str | None) -> ssl.SSLContext:
    """Return what checks the certificate of a receiver."""
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        why = error.strerror or "it holds no certificate"
        raise NotifyError(Problem(f"{ca_file} cannot be read: {why}", "see ca_file in notify.yaml")) from None


class RefusedError(NotifyError):
    """The receiver refuses this message; later ones may be accepted."""


STEP_S = 10.0
MOST_ANSWER_BYTES = 65_536
REFUSED = frozenset({400, 413, 422})
"""Answers that are about the message: malformed, too large, or not to be processed."""
CA = "ca_file in notify.yaml may name the certificates to trust"


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted where."""

    url: str = field(repr=False)
    data: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    trust: ssl.SSLContext | None = None


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: whoever took over an address must not receive what was meant for its owner."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return a redirect as the answer."""


def post(asked: Request) -> None:
    """Post; NotifyError when it is not taken."""
    try:
        within(SEND_S, lambda: _post(asked))
    except urllib.error.HTTPError as error:
        error.close()
        kind = RefusedError if error.code in REFUSED else NotifyError
        raise kind(Problem(_refusal(error.code), _remedy(error.code))) from None
    except urllib.error.URLError as error:
        raise NotifyError(_unreached(error.reason)) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotifyError(_unreached(error)) from None


def _post(asked: Request) -> None:
    parts = checked_url(asked.url)
    headers = {"Content-Type": "application/json", "User-Agent": f"netkit/{__version__}", **asked.headers}
    request = urllib.request.Request(asked.url, asked.data, headers, method="POST")  # noqa: S310 (checked_url)
    proxies = urllib.request.ProxyHandler({}) if _is_here(parts.hostname or "") else urllib.request.ProxyHandler()
    https = urllib.request.HTTPSHandler(context=asked.trust)
    with urllib.request.build_opener(proxies, https, _Unredirected()).open(request, timeout=STEP_S) as answer:
        answer.read(MOST_ANSWER_BYTES)


def _is_here(host: str) -> bool:
    """Whether a name is this machine."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost" or host.lower().endswith(".localhost")


def _refusal(code: int) -> str:
    return f"it answers with a redirect ({code})" if 300 <= code < 400 else f"it answers with status {code}"


def _remedy(code: int) -> str:
    if 300 <= code < 400:
        return "give the address it redirects to, if that is meant"
    known = {401: "see its token", 403: "see its token or address", 404: "see its address", 410: "see its address"}
    return known.get(code, "see its own log")


def _unreached(reason: object) -> Problem:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return Problem(f"its certificate is not trusted: {reason.verify_message}", CA)
    if isinstance(reason, TimeoutError):
        return Problem(f"no answer within {STEP_S:g} s", "see whether it can be reached from here")
    if isinstance(reason, ValueError) and not isinstance(reason, OSError):
        return Problem("its address cannot be used", "write http://HOST/PATH or https://HOST/PATH")
    why = reason.strerror if isinstance(reason, OSError) and reason.strerror else type(reason).__name__
    return Problem(f"it cannot be reached: {why}", "see its address, and whether it runs")
