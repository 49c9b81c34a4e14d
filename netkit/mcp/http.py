"""The tools of `netkit mcp` over streamable HTTP: each call has a `netkit mcp` of its own, which ends with it.

The server of the HTTP requests thus opens no fabric and waits for none, and a call that hangs is ended.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.types import CallToolResult, ListToolsResult, TextContent, Tool
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from netkit import __version__
from netkit.mcp.server import INSTRUCTIONS, clean, server
from netkit.serve.guard import Access, problem

PATH = "/mcp"
LONGEST_S = 50.0
"""How long a call may take: less than the timeout of its connection."""
MOST_AT_ONCE, MOST_WAITING = 2, 16
UNKNOWN = "send a token: Authorization: Bearer TOKEN; a browser's session is not enough"
FOREIGN = "pages of other servers may not call tools"
ONLY_POST = "send requests as POST; there are no sessions and no streams to open"
NOT_ALLOWED = "propose_change needs the token that may propose; see netkit serve --proposer-token-file"
STOPPED = "the server stops; try again later"
BUSY = "too many calls at once; try again in a moment"


@dataclass(slots=True)
class Tools:
    """The tools of a fabric, each call carried out by a process of its own."""

    words: Sequence[str]
    """The command that serves the fabric on its standard input and output."""
    environment: Mapping[str, str]
    turns: asyncio.Semaphore
    """Limits the processes of all fabrics."""
    stop: asyncio.Event
    """Ends calls when the server stops."""
    _waiting: int = 0

    def server(self, *, may_propose: bool) -> Server[Any]:
        """Build the server for clients that may propose changes, or may not."""

        async def listed(*_: object) -> ListToolsResult:
            return ListToolsResult(tools=[one for one in await _tools() if may_propose or _only_reads(one)])

        async def called(_: object, asked: Any) -> CallToolResult:
            if not may_propose and any(one.name == asked.name and not _only_reads(one) for one in await _tools()):
                return _refused(NOT_ALLOWED)
            return await self._call(asked.name, asked.arguments or {})

        return Server(
            "netkit", version=__version__, instructions=INSTRUCTIONS, on_list_tools=listed, on_call_tool=called
        )

    async def _call(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        """Carry out a call, unless the server stops meanwhile."""
        answer, stops = asyncio.ensure_future(self._answer(name, arguments)), asyncio.ensure_future(self.stop.wait())
        try:
            await asyncio.wait({answer, stops}, return_when=asyncio.FIRST_COMPLETED)
            return answer.result() if answer.done() else _refused(STOPPED)
        finally:
            stops.cancel()
            answer.cancel()

    async def _answer(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        if self._waiting >= MOST_WAITING:
            return _refused(BUSY)
        self._waiting += 1
        first, *rest = self.words
        child = StdioServerParameters(command=first, args=rest, env=dict(self.environment))
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
            try:
                async with asyncio.timeout(LONGEST_S), self.turns, Client(stdio_client(child, errors)) as client:
                    return await client.call_tool(name, arguments)
            except TimeoutError:
                return _refused(f"ended: it took more than {LONGEST_S:g} s; ask for fewer devices with limit")
            except Exception as error:  # it did not start, such as with an invalid intent, or was killed
                errors.seek(0)
                return _refused(clean(errors.read().strip() or f"netkit mcp ended: {error}; try again"))
            finally:
                self._waiting -= 1


async def _tools() -> list[Tool]:
    return await server(Path(), "").list_tools()


def _only_reads(tool: Tool) -> bool:
    return bool(tool.annotations and tool.annotations.read_only_hint)


def _refused(why: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=why)], is_error=True)


@dataclass(slots=True)
class McpEndpoint:
    """The paths /mcp of the first fabric, and /mcp/NAME of each."""

    fabrics: Mapping[str, Tools]
    """By the name that addresses use; the first one has /mcp too."""
    access: Callable[[Request], Access]
    """What the token of a request permits."""
    is_foreign: Callable[[Request], bool]
    """Whether a page of another server sends a request."""
    _managers: dict[tuple[str, bool], StreamableHTTPSessionManager] = field(default_factory=dict)

    @property
    def routes(self) -> list[Route]:
        return [Route(PATH, self), Route(f"{PATH}/{{fabric}}", self)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests for the length of a block."""
        async with AsyncExitStack() as stack:
            for key, tools in self.fabrics.items():
                for may_propose in (False, True):
                    manager = StreamableHTTPSessionManager(
                        tools.server(may_propose=may_propose), json_response=True, stateless=True
                    )
                    await stack.enter_async_context(manager.run())
                    self._managers[(key, may_propose)] = manager
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope)
        access, key = self.access(request), request.path_params.get("fabric", next(iter(self.fabrics)))
        if access == "none":
            answer: ASGIApp = problem(401, UNKNOWN, {"WWW-Authenticate": 'Bearer realm="netkit"'})
        elif self.is_foreign(request):
            answer = problem(403, FOREIGN)
        elif key not in self.fabrics:
            answer = problem(404, f"no fabric {key[:80]!r} is served here")
        elif request.method != "POST":
            answer = problem(405, ONLY_POST, {"Allow": "POST"})
        else:
            answer = self._managers[(key, access == "propose")].handle_request
        await answer(scope, receive, send)
