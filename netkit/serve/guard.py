"""Access control for every request: nothing without the token, and strict headers on every answer."""

import hmac
import json
import time
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from netkit.serve import page
from netkit.serve.token import SESSION_S, Guesses, Token, is_own_name

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
WRONG_HOST = "this server is not known by that name: add it with netkit serve --name"
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
        """Return the answer that refuses a request, or None to let it pass."""
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
        """Return the token of forms for this browser (CSRF); empty without a session."""
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
        """Return what the token permits that a request carries itself."""
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
    """Return the client's address; behind a proxy, that of the proxy."""
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
    """Return the fields of a form, each given once; None for anything else."""
    body = await body_of(request)
    try:
        found = parse_qs((body or b"").decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=most)
    except ValueError:  # too many fields
        return None
    if body is None or any(len(values) > 1 for values in found.values()):
        return None
    return {name: values[0] for name, values in found.items()}


async def body_of(request: Request) -> bytes | None:
    """Return the body of a request; None if it is too large or the client has gone."""
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
