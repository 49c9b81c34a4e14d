"""Access control for every request: nothing without the token, and strict headers on every answer."""

import hashlib
import hmac
import ipaddress
import json
import os
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from netkit.errors import Problem, UsageError
from netkit.serve import page
from netkit.serve.schedule import write_private

SHORTEST_TOKEN = 20
SESSION_S = 12 * 3600
MOST_WRONG = 10
WRONG_S = 60.0
MOST_ADDRESSES = 1024


@dataclass(frozen=True, slots=True)
class Token:
    """The secret that grants read access."""

    text: str

    def __repr__(self) -> str:
        return "Token()"

    def is_it(self, given: str) -> bool:
        """Compare a text with the token in constant time."""
        return hmac.compare_digest(_digest(given), _digest(self.text))

    def session(self, now_s: float) -> str:
        """A session cookie; it cannot be made without the token."""
        head = f"{int(now_s) + SESSION_S}.{secrets.token_hex(8)}"
        return f"{head}.{self._mark(head)}"

    def has_made(self, session: str, now_s: float) -> bool:
        """Whether a session was made with this token, and has not expired."""
        head, _, mark = session.rpartition(".")
        if not hmac.compare_digest(_digest(mark), _digest(self._mark(head))):
            return False
        return now_s < int(head.partition(".")[0])

    def form(self, session: str) -> str:
        """The token of forms in a session (CSRF); no other page can know it."""
        return hmac.new(self.text.encode(), f"netkit form {session}".encode(), hashlib.sha256).hexdigest()

    def _mark(self, head: str) -> str:
        return hmac.new(self.text.encode(), f"netkit session {head}".encode(), hashlib.sha256).hexdigest()


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(slots=True)
class Guesses:
    """Recent wrong tokens by address; after too many, an address has to wait."""

    clock: Callable[[], float] = time.monotonic
    wrong: OrderedDict[str, list[float]] = field(default_factory=OrderedDict)

    def wait_s(self, address: str) -> float:
        """How long an address has to wait before it may try again."""
        recent = [at_s for at_s in self.wrong.get(address, ()) if self.clock() - at_s < WRONG_S]
        return 0.0 if len(recent) < MOST_WRONG else WRONG_S - (self.clock() - recent[0])

    def note(self, address: str) -> None:
        """Record a wrong token; the addresses unused for longest are dropped first."""
        self.wrong[address] = [*self.wrong.get(address, ())[-(MOST_WRONG - 1) :], self.clock()]
        self.wrong.move_to_end(address)
        while len(self.wrong) > MOST_ADDRESSES:
            self.wrong.popitem(last=False)


def is_own_name(host: str, names: Collection[str]) -> bool:
    """Whether a Host header means this server: an address, or one of its names, on any port.

    Guards against DNS rebinding: a foreign name that resolves to this address.
    """
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host
    if name.startswith("[") and name.endswith("]"):
        return is_address(name[1:-1])
    return is_address(name) or name.lower().rstrip(".") in names


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


VARIABLE = "NETKIT_SECRET_SERVE_TOKEN"
MADE = "token"


def token_of(file: Path | None, folder: Path) -> tuple[Token, str]:
    """The token, and where it comes from."""
    if file is not None:
        return _checked(_read(file), str(file)), str(file)
    if value := os.environ.get(VARIABLE, ""):
        return _checked(value, VARIABLE), f"${VARIABLE}"
    kept = folder / MADE
    if not kept.exists():
        write_private(kept, f"{secrets.token_urlsafe(32)}\n")
    return _checked(_read(kept), str(kept)), str(kept)


def proposer_token(file: Path, reader: Token) -> Token:
    """The token that may propose; it must not be the one that reads."""
    found = _checked(_read(file), str(file))
    if found.is_it(reader.text):
        what = f"{file}: the proposer token is the same as the reading token"
        raise UsageError(Problem(what, "make another one with openssl rand -base64 32"))
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not text"
        raise UsageError(Problem(f"the token cannot be read: {why}", "name another file", file=str(file))) from None


def _checked(value: str, where: str) -> Token:
    if len(value) < SHORTEST_TOKEN or not value.isascii() or not value.isprintable() or " " in value:
        what = f"{where}: a token has at least {SHORTEST_TOKEN} printable ASCII characters, and no space"
        raise UsageError(Problem(what, "make one with openssl rand -base64 32"))
    return Token(value)


Access = Literal["none", "read", "propose"]
OPEN = {"/healthz", "/login"}
MOST_FORM_BYTES = 4096
MOST_FIELDS = 4
HEADERS = {
    "Content-Security-Policy": page.NOTHING,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TITLES = {
    400: "Bad request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    413: "Content too large",
    415: "Unsupported media type",
    421: "Misdirected request",
    429: "Too many requests",
    500: "Internal error",
    503: "Service unavailable",
}
UNKNOWN = "send the token: Authorization: Bearer TOKEN"
WRONG_TOKEN = "That is not the token."  # noqa: S105 (a message)
WRONG_HOST = "unknown host name: add it with netkit serve --name"
LATER = "Too many wrong tokens from this address: try again in a minute."


def is_for_programs(request: Request) -> bool:
    """Whether a path is for programs, not for browsers."""
    return request.url.path.startswith(("/api/", "/metrics", "/mcp"))


@dataclass(frozen=True, slots=True)
class Door:
    """Who may pass, and how they get in."""

    token: Token
    fabric: str
    names: Collection[str]
    cookie: str
    is_tls: bool = False
    guesses: Guesses = field(default_factory=Guesses)
    proposer: Token | None = None
    """Reads everything too, and may propose changes of the intent (MCP); it opens no session and changes no silence."""

    def refused(self, request: Request) -> Response | None:
        """The answer that refuses a request, or None to let it pass."""
        if not is_own_name(request.headers.get("host", ""), self.names):
            return _refusal(request, 421, WRONG_HOST)
        if request.url.path in OPEN or self._has_session(request):
            return None
        given = _bearer(request)
        if not given:
            return _unknown(request)
        address = address_of(request)
        if wait_s := self.guesses.wait_s(address):
            return _refusal(request, 429, LATER, {"Retry-After": str(int(wait_s) + 1)})
        if self.access(request) != "none":
            return None
        self.guesses.note(address)
        return _unknown(request)

    def _has_session(self, request: Request) -> bool:
        session = request.cookies.get(self.cookie, "")
        return bool(session) and self.token.has_made(session, time.time())

    def form(self, request: Request) -> str:
        """The token of forms for this browser (CSRF); empty without a session."""
        return self.token.form(request.cookies[self.cookie]) if self._has_session(request) else ""

    def is_own_form(self, request: Request, given: str) -> bool:
        """Check that a form was made for the session that sends it, and comes from a page of this server."""
        wanted = self.form(request)
        is_sent_here = request.headers.get("origin") is not None and is_from_here(request)
        return bool(wanted) and is_sent_here and hmac.compare_digest(wanted.encode(), given.encode("utf-8", "replace"))

    def is_program(self, request: Request) -> bool:
        """Check that a request carries the token itself: a browser session is not enough for changes by programs."""
        return self.token.is_it(_bearer(request))

    def access(self, request: Request) -> Access:
        """What the token permits that a request carries itself."""
        if self.proposer is not None and self.proposer.is_it(_bearer(request)):
            return "propose"
        return "read" if self.is_program(request) else "none"

    async def login(self, request: Request) -> Response:
        """Show the login form, or open a session for the right token."""
        if request.method != "POST":
            return self._form()
        fields = await form_of(request, MOST_FIELDS)
        given = (fields or {}).get("token", "").strip() or None
        if given is None or not is_from_here(request):
            return self._form("This form was not sent from this page.", 400)
        if wait_s := self.guesses.wait_s(address_of(request)):
            return self._form(LATER, 429, {"Retry-After": str(int(wait_s) + 1)})
        if not self.token.is_it(given):
            self.guesses.note(address_of(request))
            return self._form(WRONG_TOKEN, 403)
        answer = RedirectResponse("/", 303)
        self._keep(request, answer, self.token.session(time.time()), SESSION_S)
        return answer

    async def logout(self, request: Request) -> Response:
        """End the session of a browser."""
        answer = RedirectResponse("/login", 303)
        if is_from_here(request):
            self._keep(request, answer, "", 0)
        return answer

    def _form(self, why: str = "", code: int = 200, headers: dict[str, str] | None = None) -> Response:
        own = {**(headers or {}), "Content-Security-Policy": page.policy()}
        return HTMLResponse(page.login(fabric=self.fabric, why=why), code, own)

    def _keep(self, request: Request, answer: Response, session: str, age_s: int) -> None:
        is_tls = self.is_tls or request.headers.get("origin", "").startswith("https://")  # a proxy's, before this
        answer.set_cookie(self.cookie, session, max_age=age_s, httponly=True, samesite="strict", secure=is_tls)


@dataclass(frozen=True, slots=True)
class Guard:
    """An application behind a door."""

    inside: ASGIApp
    door: Door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refused = self.door.refused(Request(scope))
        await (refused or self.inside)(scope, receive, sent)


def _bearer(request: Request) -> str:
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else ""


def address_of(request: Request) -> str:
    """The client's address; behind a proxy, that of the proxy."""
    return request.client.host if request.client is not None else ""


def _unknown(request: Request) -> Response:
    """Ask for the token: a browser gets the login form."""
    if not is_for_programs(request) and request.method in {"GET", "HEAD"} and not _bearer(request):
        return RedirectResponse("/login", 303)
    return problem(401, UNKNOWN, {"WWW-Authenticate": 'Bearer realm="netkit"'})


def _refusal(request: Request, code: int, why: str, headers: dict[str, str] | None = None) -> Response:
    """Refuse a request before anything is read of it."""
    return problem(code, why, headers) if is_for_programs(request) else PlainTextResponse(f"{why}\n", code, headers)


def problem(code: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Build a problem document (RFC 9457)."""
    body = {"type": "about:blank", "title": TITLES.get(code, "Refused"), "status": code, "detail": detail}
    return Response(json.dumps(body), code, headers, "application/problem+json")


async def form_of(request: Request, most: int) -> dict[str, str] | None:
    """The fields of a form, each given once; None for anything else."""
    body = await body_of(request)
    try:
        found = parse_qs((body or b"").decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=most)
    except ValueError:  # too many fields
        return None
    if body is None or any(len(values) > 1 for values in found.values()):
        return None
    return {name: values[0] for name, values in found.items()}


async def body_of(request: Request) -> bytes | None:
    """The body of a request; None if it is too large or the client has gone."""
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_FORM_BYTES:
                return None
    except ClientDisconnect:
        return None
    return body


def is_from_here(request: Request) -> bool:
    """Whether a form was sent from a page of this server, according to the browser's Origin header."""
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host", "")
