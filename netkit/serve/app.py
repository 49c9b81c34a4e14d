"""The web application: routes and their handlers. Read-only but for login, and silences where they are allowed."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from netkit.errors import NetkitError, UsageError
from netkit.report.page import frame
from netkit.serve import api, page
from netkit.serve.guard import TITLES, Door, Guard, address_of, body_of, form_of, is_for_programs, problem
from netkit.serve.metrics import metrics_text
from netkit.serve.now import Site
from netkit.serve.openapi import openapi
from netkit.serve.query import Query, QueryError
from netkit.serve.record import LATEST
from netkit.serve.silencing import FORBIDDEN
from netkit.store import CheckRun

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
LATER = {"Retry-After": "30"}
MOST_FIELDS = 10
Answer = Callable[[Request], Awaitable[Response]]


def app(site: Site, door: Door) -> ASGIApp:
    """Build the application, behind its guard."""
    paths = _Paths(site)
    routes = [
        Route("/", paths.overview),
        Route("/report", paths.latest_page),
        Route("/runs/{run}", paths.run_page),
        Route("/silences", SilencePages(site, door).page, methods=["GET", "POST"]),
        Route("/login", door.login, methods=["GET", "POST"]),
        Route("/logout", door.logout, methods=["POST"]),
        Route("/healthz", _healthz),
        Route("/metrics", paths.metrics),
        Route(f"{api.ROOT}/status", paths.plain(api.status)),
        Route(f"{api.ROOT}/now", paths.plain(api.now)),
        Route(f"{api.ROOT}/causes", paths.plain(api.causes)),
        Route(f"{api.ROOT}/deploys", paths.plain(api.deploys)),
        Route(f"{api.ROOT}/runs", paths.plain(api.runs)),
        Route(f"{api.ROOT}/runs/{{run}}", paths.run),
        Route(f"{api.ROOT}/findings", paths.plain(api.findings)),
        Route(f"{api.ROOT}/states", paths.plain(api.states)),
        Route(f"{api.ROOT}/devices", paths.of_latest(lambda report, _: api.devices(report))),
        Route(
            f"{api.ROOT}/devices/{{device}}",
            paths.of_latest(lambda report, request: api.device(report, request.path_params["device"])),
        ),
        Route(f"{api.ROOT}/trends", paths.of_latest(lambda report, _: api.trends(report))),
        Route(f"{api.ROOT}/silences", paths.plain(api.silences)),
        Route(f"{api.ROOT}/silences", SilencePages(site, door).add, methods=["POST"]),
        Route(f"{api.ROOT}/silences/{{id}}", SilencePages(site, door).end, methods=["DELETE"]),
        Route(f"{api.ROOT}/openapi.json", _openapi),
    ]
    handlers: dict[Any, Any] = {
        HTTPException: _http_error,
        QueryError: _reported(400),
        api.MissingError: _reported(404),
        UsageError: _reported(400),
        NetkitError: _reported(503),
        Exception: _bug,
    }
    found = Starlette(routes=routes, exception_handlers=handlers)
    found.router.redirect_slashes = False
    return Guard(found, door)


@dataclass(frozen=True, slots=True)
class SilencePages:
    """Shows silences, and changes them for authorised users."""

    site: Site
    door: Door

    async def page(self, request: Request) -> Response:
        """Show the silences; a form of this page adds or ends one."""
        if request.method != "POST":
            return await self._page(request)
        if not self.site.silencer.is_allowed:
            return refusal(request, 403, FORBIDDEN)
        given = await form_of(request, MOST_FIELDS)
        if given is None or not self.door.is_own_form(request, given.pop("form", "")):
            return await self._page(request, 403, why="This form was not sent from this page: nothing was changed.")
        silencer, address = self.site.silencer, address_of(request)
        try:
            if ended := given.pop("end", ""):
                output = await silencer.end(ended, given.get("by", ""), address)
            else:
                output = await silencer.add(given, address)
        except NetkitError as error:
            return await self._page(request, 400, given, why=str(error))
        return await self._page(request, output=output)

    async def _page(
        self,
        request: Request,
        code: int = 200,
        given: Mapping[str, str] | None = None,
        *,
        output: str = "",
        why: str = "",
    ) -> Response:
        form = self.door.form(request)
        text = await run_in_threadpool(page.silences, self.site, form, given or {}, output=output, why=why)
        return HTMLResponse(text, code, {"Content-Security-Policy": page.policy()})

    async def add(self, request: Request) -> Response:
        """Add a silence or an acknowledgement for a program."""
        if refused := self._refused(request):
            return refused
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/json":
            return problem(415, "send application/json")
        body = await body_of(request)
        if body is None:
            return problem(413, "the request is too long")
        try:
            given = json.loads(body)
        except (ValueError, RecursionError):
            given = None
        if not isinstance(given, dict):
            return problem(400, "send an object")
        return _text_answer(201, await self.site.silencer.add(given, address_of(request)))

    async def end(self, request: Request) -> Response:
        """End a silence or an acknowledgement for a program."""
        if refused := self._refused(request):
            return refused
        by = Query.of(request.query_params.multi_items(), "by").text("by")
        name: str = request.path_params["id"]
        if name not in {one.silence.id for one in await run_in_threadpool(self.site.silencer.states)}:
            raise api.MissingError(f"no silence {name[:80]!r}")
        return _text_answer(200, await self.site.silencer.end(name, by, address_of(request)))

    def _refused(self, request: Request) -> Response | None:
        """Refuse a program that may not change silences; its token must come with the request, not from a browser."""
        if not self.site.silencer.is_allowed:
            return problem(403, FORBIDDEN)
        if not self.door.is_program(request):
            return problem(403, "send the token: Authorization: Bearer TOKEN; a session is not enough here")
        return None


def _text_answer(code: int, text: str) -> Response:
    return Response(json.dumps({"text": text}), code, media_type="application/json")


@dataclass(frozen=True, slots=True)
class _Paths:
    """The handlers of a site."""

    site: Site

    async def overview(self, request: Request) -> Response:
        text = await run_in_threadpool(page.overview, self.site, request.query_params.get("before", ""))
        return HTMLResponse(text, headers={"Content-Security-Policy": page.refreshing_policy()})

    async def latest_page(self, request: Request) -> Response:
        del request
        return await self._page(LATEST)

    async def run_page(self, request: Request) -> Response:
        return await self._page(request.path_params["run"])

    async def _page(self, wanted: str) -> Response:
        one = await self._made(wanted)
        text = await run_in_threadpool(self.site.records.page, one)
        policy = f"{frame.policy()}; frame-ancestors 'none'"
        return HTMLResponse(text, headers={"Content-Security-Policy": policy})

    async def metrics(self, request: Request) -> Response:
        del request
        return Response(await run_in_threadpool(metrics_text, self.site), media_type=PROMETHEUS)

    async def run(self, request: Request) -> Response:
        _no_parameters(request)
        one = await self._made(request.path_params["run"])
        return _tagged(request, await run_in_threadpool(self.site.records.file(one).read_bytes))

    def plain(self, answer: Callable[[Site, api.Given], dict[str, Any]]) -> Answer:
        """Make a handler of values of the site."""

        async def answered(request: Request) -> Response:
            return _json(request, await run_in_threadpool(answer, self.site, request.query_params.multi_items()))

        return answered

    def of_latest(self, answer: Callable[[dict[str, Any], Request], dict[str, Any]]) -> Answer:
        """Make a handler of values of the latest report."""

        async def answered(request: Request) -> Response:
            _no_parameters(request)
            one = await self._made(LATEST)
            report = await run_in_threadpool(self.site.records.report, one)
            return _json(request, answer(report, request))

        return answered

    async def _made(self, wanted: str) -> CheckRun:
        """Return a run, once its report exists."""
        one = await run_in_threadpool(api.chosen, self.site, wanted)
        if not self.site.records.file(one).exists():
            await self.site.make(one)
        return one


async def _healthz(request: Request) -> Response:
    del request
    return PlainTextResponse("ok\n")


async def _openapi(request: Request) -> Response:
    _no_parameters(request)
    return _json(request, openapi())


def _no_parameters(request: Request) -> None:
    Query.of(request.query_params.multi_items())


def _json(request: Request, data: object) -> Response:
    return _tagged(request, json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode())


def _tagged(request: Request, body: bytes) -> Response:
    """Build an answer that a client may cache (ETag)."""
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = (one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(","))
    if tag in known:
        return Response(status_code=304, headers=headers)
    return Response(body, media_type="application/json", headers=headers)


def _reported(code: int) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Make a handler of errors that have a text for people."""

    async def answered(request: Request, error: Exception) -> Response:
        return refusal(request, code, str(error.args[0]) if error.args else "", LATER if code == 503 else None)

    return answered


async def _http_error(request: Request, error: HTTPException) -> Response:
    allowed = dict(error.headers or {})
    texts = {404: "there is nothing at this address", 405: "this server is read-only: use GET"}
    return refusal(request, error.status_code, texts.get(error.status_code, error.detail), allowed)


async def _bug(request: Request, error: Exception) -> Response:
    return refusal(request, 500, f"{type(error).__name__}: see the server's log")


def refusal(request: Request, code: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Explain why a request is not answered: to programs as a problem document, else as a page."""
    if is_for_programs(request):
        return problem(code, detail, headers)
    own = {**(headers or {}), "Content-Security-Policy": page.policy()}
    return HTMLResponse(page.notice(TITLES.get(code, "Refused"), detail), code, own)
