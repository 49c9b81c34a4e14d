"""The web application: routes and their handlers. Read-only but for login, and silences where they are allowed."""

import hashlib
import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp

from netkit.errors import NetkitError, UsageError
from netkit.report.page import MOST_DEVICES
from netkit.report.page.frame import policy
from netkit.serve import api, page
from netkit.serve.fabrics import Fabrics, described
from netkit.serve.fleet_state import FleetState
from netkit.serve.guard import TITLES, Door, Guard, address_of, body_of, form_of, is_for_programs, problem
from netkit.serve.metrics import metrics_text
from netkit.serve.now import API, OwnChecks, ServedFabric
from netkit.serve.openapi import openapi
from netkit.serve.query import Query, QueryError
from netkit.serve.record import LATEST, Records
from netkit.serve.silencing import FORBIDDEN, Silencer
from netkit.store import CheckRun

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
LATER = {"Retry-After": "30"}
MOST_FIELDS = 10
Answer = Callable[[Request], Awaitable[Response]]


def app(fabrics: Fabrics, door: Door, more: Sequence[Route] = ()) -> ASGIApp:
    """Build the application, behind its guard."""
    paths, silences = _Paths(fabrics), SilencePages(fabrics, door)
    own_pages = [
        Route("/report", paths.latest_page),
        Route("/runs/{run}", paths.run_page),
        Route("/silences", silences.page, methods=["GET", "POST"]),
    ]
    data = [
        Route("/status", paths.plain(api.status)),
        Route("/now", paths.plain(api.now)),
        Route("/causes", paths.plain(api.causes)),
        Route("/deploys", paths.plain(api.deploys)),
        Route("/runs", paths.plain(api.runs)),
        Route("/runs/{run}", paths.run),
        Route("/findings", paths.plain(api.findings)),
        Route("/states", paths.plain(api.states)),
        Route("/devices", paths.of_latest(lambda report, _: api.devices(report))),
        Route(
            "/devices/{device}",
            paths.of_latest(lambda report, request: api.device(report, request.path_params["device"])),
        ),
        Route("/trends", paths.of_latest(lambda report, _: api.trends(report))),
        Route("/silences", paths.plain(api.silences)),
        Route("/silences", silences.add, methods=["POST"]),
        Route("/silences/{id}", silences.end, methods=["DELETE"]),
    ]
    routes = [
        Route("/", paths.first),
        Route("/fabrics", paths.fabrics_page),
        Route("/fleet", paths.fleet_page),
        Route("/login", door.login, methods=["GET", "POST"]),
        Route("/logout", door.logout, methods=["POST"]),
        Route("/healthz", _healthz),
        Route("/metrics", paths.metrics),
        Route(f"{API}/openapi.json", _openapi),
        Route(f"{API}/fabrics", paths.fabrics_data),
        Route(f"{API}/fleet", paths.fleet_data),
        Mount(f"{API}/fabrics/{{fabric}}", Router(data, redirect_slashes=False)),
        Mount(API, Router(data, redirect_slashes=False)),
        Route("/fabrics/{fabric}", paths.overview),
        Mount("/fabrics/{fabric}", Router(own_pages, redirect_slashes=False)),
        *own_pages,
        *more,
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

    fabrics: Fabrics
    door: Door

    async def page(self, request: Request) -> Response:
        """Show the silences; a form of this page adds or ends one."""
        silencer = (await self._own(request)).silencer
        if request.method != "POST":
            return await self._page(request)
        if not silencer.is_allowed:
            return refusal(request, 403, FORBIDDEN)
        given = await form_of(request, MOST_FIELDS)
        if given is None or not self.door.is_own_form(request, given.pop("form", "")):
            return await self._page(request, 403, why="This form was not sent from this page: nothing was changed.")
        address = address_of(request)
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
        form, served, own = self.door.form(request), await served_by(self.fabrics, request), await self._own(request)
        text = await run_in_threadpool(page.silences, served, own.silencer, form, given or {}, output=output, why=why)
        return HTMLResponse(text, code, {"Content-Security-Policy": page.policy()})

    async def _own(self, request: Request) -> OwnChecks:
        return api.own_checks(await served_by(self.fabrics, request))

    async def add(self, request: Request) -> Response:
        """Add a silence or an acknowledgement for a program."""
        silencer = (await self._own(request)).silencer
        if refused := self._refused(request, silencer):
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
        return _text_answer(201, await silencer.add(given, address_of(request)))

    async def end(self, request: Request) -> Response:
        """End a silence or an acknowledgement for a program."""
        silencer = (await self._own(request)).silencer
        if refused := self._refused(request, silencer):
            return refused
        by = Query.of(request.query_params.multi_items(), "by").text("by")
        name: str = request.path_params["id"]
        if name not in {one.silence.id for one in await run_in_threadpool(silencer.states)}:
            raise api.MissingError(f"no silence {name[:80]!r}")
        return _text_answer(200, await silencer.end(name, by, address_of(request)))

    def _refused(self, request: Request, silencer: Silencer) -> Response | None:
        """Refuse a program that may not change silences; its token must come with the request, not from a browser."""
        if not silencer.is_allowed:
            return problem(403, FORBIDDEN)
        if not self.door.is_program(request):
            return problem(403, "send the token: Authorization: Bearer TOKEN; a session is not enough here")
        return None


def _text_answer(code: int, text: str) -> Response:
    return Response(json.dumps({"text": text}), code, media_type="application/json")


async def served_by(fabrics: Fabrics, request: Request) -> ServedFabric:
    """The fabric that a request is about: the one in its address, else the server's first."""
    key = request.path_params.get("fabric")
    found = fabrics.own[0] if key is None else await run_in_threadpool(fabrics.find, key)
    if found is None:
        raise api.MissingError(f"no fabric {key!r}: {API}/fabrics lists them")
    return found


@dataclass(frozen=True, slots=True)
class _Paths:
    """The handlers of a server."""

    fabrics: Fabrics

    async def first(self, request: Request) -> Response:
        """Show the server's fabric; if it checks several, all of them."""
        return RedirectResponse("/fabrics", 303) if len(self.fabrics.own) > 1 else await self.overview(request)

    async def overview(self, request: Request) -> Response:
        served = await served_by(self.fabrics, request)
        others = await run_in_threadpool(self.fabrics.every)
        before = request.query_params.get("before", "")
        text = await run_in_threadpool(page.overview, served, before, has_others=len(others) > 1)
        return HTMLResponse(text, headers={"Content-Security-Policy": page.refreshing_policy()})

    async def fabrics_page(self, request: Request) -> Response:
        del request
        text = await run_in_threadpool(page.fabrics, self.fabrics)
        return HTMLResponse(text, headers={"Content-Security-Policy": page.refreshing_policy()})

    async def fabrics_data(self, request: Request) -> Response:
        _no_parameters(request)
        return _json(request, await run_in_threadpool(described, self.fabrics))

    async def fleet_page(self, request: Request) -> Response:
        del request
        text = await run_in_threadpool(page.fleet, self._fleet())
        return HTMLResponse(text, headers={"Content-Security-Policy": page.refreshing_policy()})

    async def fleet_data(self, request: Request) -> Response:
        _no_parameters(request)
        return _json(request, self._fleet().described(time.time()))

    def _fleet(self) -> FleetState:
        if self.fabrics.fleet is None:
            raise api.MissingError("this server has no fleet: netkit serve --fleet shows its sites")
        return self.fabrics.fleet()

    async def latest_page(self, request: Request) -> Response:
        return await self._page(request, LATEST)

    async def run_page(self, request: Request) -> Response:
        return await self._page(request, request.path_params["run"])

    async def _page(self, request: Request, wanted: str) -> Response:
        records, one = await self._made(request, wanted)
        text = await run_in_threadpool(records.page, one)
        headers = {"Content-Security-Policy": f"{policy()}; frame-ancestors 'none'"}
        return HTMLResponse(text, headers=headers)

    async def metrics(self, request: Request) -> Response:
        del request
        every = await run_in_threadpool(self.fabrics.every)
        fleet = self.fabrics.fleet() if self.fabrics.fleet is not None else None
        return Response(await run_in_threadpool(metrics_text, every, fleet), media_type=PROMETHEUS)

    async def run(self, request: Request) -> Response:
        _no_parameters(request)
        records, one = await self._made(request, request.path_params["run"])
        return _tagged(request, await run_in_threadpool(records.file(one).read_bytes))

    def plain(self, answer: Callable[[ServedFabric, api.Given], dict[str, Any]]) -> Answer:
        """Make a handler of values of a fabric."""

        async def answered(request: Request) -> Response:
            served = await served_by(self.fabrics, request)
            return _json(request, await run_in_threadpool(answer, served, request.query_params.multi_items()))

        return answered

    def of_latest(self, answer: Callable[[dict[str, Any], Request], dict[str, Any]]) -> Answer:
        """Make a handler of values of the latest report."""

        async def answered(request: Request) -> Response:
            _no_parameters(request)
            records, one = await self._made(request, LATEST)
            report = await run_in_threadpool(records.report, one)
            return _json(request, answer(report, request))

        return answered

    async def _made(self, request: Request, wanted: str) -> tuple[Records, CheckRun]:
        """A run, once its report exists; MissingError if another server makes it."""
        served = await served_by(self.fabrics, request)
        own = api.own_checks(served)
        one = await run_in_threadpool(api.chosen, served, wanted)
        if one.devices > MOST_DEVICES:
            where = f"{served.api}/findings?run={one.name}"
            raise api.MissingError(f"a run of {one.devices:,} devices has no report: {where} lists what it found")
        if not served.records.file(one).exists():
            await own.make(one)
        return served.records, one


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
