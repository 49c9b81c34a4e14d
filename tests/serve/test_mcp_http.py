"""`netkit serve --mcp`, driven by the client of the protocol's own SDK over HTTP: what each token may call."""

import asyncio
import json
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.command import assert_refused, run
from tests.lab.running import until
from tests.mcp.test_mcp import git
from tests.serve.conftest import HOSTILE
from tests.serve.server import TOKEN, Answer, Running, is_gone, serving

pytestmark = pytest.mark.daemon
PROPOSER = "another-token-for-tests-only-0123456789"
READING = {
    *("summary", "devices", "addresses", "cabling", "configuration", "explain", "plan", "findings", "history"),
    "checks",
}
CALL = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "checks", "arguments": {}}})


@pytest.fixture(scope="module")
def served(places: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    """A server after its first round, and its fabric in a git repository."""
    above, fabric = places[0].parent, places[0]
    git(above, "init", "-q", "-b", "main")
    git(above, "add", "fabric")
    git(above, "commit", "-q", "-m", "begin")
    token = tmp_path_factory.mktemp("token") / "proposer"
    token.write_text(f"{PROPOSER}\n", encoding="utf-8")
    options = ("--from", places[1], "--every=1d", "--mcp", "--proposer-token-file", token)
    with serving(fabric, tmp_path_factory.mktemp("state"), *options) as running:
        running.await_run()
        yield running, fabric
        assert "Traceback" not in running.output()


def asked(server: Running, token: str, *calls: tuple[str, Mapping[str, Any]]) -> tuple[set[str], list[Any]]:
    """The names of all tools, and the data or the error of each call."""

    async def ask() -> tuple[set[str], list[Any]]:
        headers = {"Authorization": f"Bearer {token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=120) as http,
            Client(streamable_http_client(f"http://127.0.0.1:{server.port}/mcp", http_client=http)) as client,
        ):
            names = {tool.name for tool in (await client.list_tools()).tools}
            results: list[Any] = [await client.call_tool(name, dict(given)) for name, given in calls]
            return names, [one.content[0].text if one.is_error else one.structured_content for one in results]

    return asyncio.run(ask())


def test_the_tools_return_the_data_of_the_command_line(served: tuple[Running, Path]) -> None:
    server, fabric = served
    names, (addresses, plan, findings, wrong, unknown) = asked(
        server,
        TOKEN,
        ("addresses", {"limit": "leaf01"}),
        ("plan", {"revision": "HEAD"}),
        ("findings", {}),
        ("explain", {"place": "leaf99:swp1s0"}),
        ("remove_everything", {}),
    )
    assert names == READING
    printed = run("design", "--fabric", fabric, "--addresses", "--limit", "leaf01", "--format", "json")
    assert addresses["addresses"] == json.loads(printed.stdout)
    assert plan == json.loads(run("plan", "--fabric", fabric, "--against", "git:HEAD", "--format", "json").stdout)
    # Device text is data: it is in the findings, without its control characters.
    text = json.dumps(findings, ensure_ascii=False)
    assert HOSTILE.partition(" ")[0] in text
    assert all(each.isprintable() for each in text)
    assert "leaf99" in wrong
    assert "remove_everything" in unknown


def test_only_a_token_with_that_permission_may_propose(served: tuple[Running, Path]) -> None:
    server, fabric = served
    files = {"fabric.yaml": (fabric / "fabric.yaml").read_text(encoding="utf-8") + "# changed\n"}
    given = ("propose_change", {"files": files, "branch": "more", "message": "Say more"})
    before = git(fabric, "status", "--porcelain=v2", "--branch")
    _, (refused,) = asked(server, TOKEN, given)
    assert refused == "propose_change needs the token that may propose; see netkit serve --proposer-token-file"
    assert git(fabric, "branch", "--format", "%(refname:short)").split() == ["main"]
    names, (done,) = asked(server, PROPOSER, given)
    assert names == READING | {"propose_change"}
    assert (done["branch"], done["commit"]) == ("netkit/more", git(fabric, "rev-parse", "netkit/more").strip())
    assert git(fabric, "status", "--porcelain=v2", "--branch") == before
    # It reads the API as well, but it opens no session and changes no silence.
    assert server.ask("/api/v1/now", token=PROPOSER).code == 200
    assert server.ask("/api/v1/silences", token=PROPOSER, method="POST", body="{}").code == 403
    assert server.ask("/login", token="", method="POST", body=f"token={PROPOSER}").code == 403


def call(server: Running, path: str = "/mcp", method: str = "POST", **headers: str) -> Answer:
    own = {"content_type": "application/json", "accept": "application/json, text/event-stream", **headers}
    return server.ask(path, method=method, body=CALL, **own)


@pytest.mark.parametrize(
    ("code", "given"),
    [
        (401, {"token": ""}),
        (401, {"token": "x" * 30}),
        (421, {"host": "attacker.example"}),
        (403, {"origin": "https://attacker.example"}),
        (403, {"origin": "null"}),
        (404, {"path": "/mcp/other"}),
        (404, {"path": "/mcp/other/more"}),
        (405, {"method": "GET"}),
        (405, {"method": "DELETE"}),
        (400, {"content_type": "text/plain"}),
    ],
)
def test_refused_requests(served: tuple[Running, Path], code: int, given: dict[str, str]) -> None:
    answer = call(served[0], **given)
    assert answer.code == code, answer.text
    assert "Traceback" not in answer.text


def test_a_session_of_a_browser_calls_no_tool(served: tuple[Running, Path]) -> None:
    server = served[0]
    login = server.ask("/login", token="", method="POST", body=f"token={TOKEN}")
    cookie = login.headers["set-cookie"].partition(";")[0]
    assert server.ask("/api/v1/now", token="", cookie=cookie).code == 200
    assert call(server, token="", cookie=cookie).code == 401


def test_requests_without_the_protocol(served: tuple[Running, Path]) -> None:
    server, fabric = served
    name = json.loads(run("design", "--fabric", fabric, "--format", "json").stdout)["name"]
    known = call(server, f"/mcp/{name}")
    assert known.code == 200, known.text
    assert "bgp.sessions" in known.data["result"]["structuredContent"]["checks"]
    headers = {"content_type": "application/json", "accept": "application/json"}
    assert server.ask("/mcp", method="POST", body="{", **headers).code == 400
    assert server.ask("/mcp", method="POST", body=" " * 5_000_000, **headers).code == 413


def test_a_fabric_that_became_invalid_is_reported_to_the_client(served: tuple[Running, Path]) -> None:
    server, fabric = served
    file = fabric / "fabric.yaml"
    text = file.read_text(encoding="utf-8")
    file.write_text("rails: many\n", encoding="utf-8")
    try:
        _, (reported,) = asked(server, TOKEN, ("devices", {}))
    finally:
        file.write_text(text, encoding="utf-8")
    assert "rails" in reported
    assert "fabric.yaml" in reported
    assert "Traceback" not in reported


def test_without_the_option_there_is_no_endpoint(server: Running) -> None:
    assert call(server).code == 404


def test_invalid_options_are_refused(places: tuple[Path, Path], tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN, encoding="utf-8")
    here = ("serve", "--fabric", places[0], "--proposer-token-file", file)
    assert_refused(run(*here), "--proposer-token-file applies to --mcp", "add --mcp")
    done = run(*here, "--mcp", NETKIT_STATE_DIR=str(tmp_path), NETKIT_SECRET_SERVE_TOKEN=TOKEN)
    assert_refused(done, "the proposer token is the same as the reading token", "openssl rand")


def test_a_stopping_server_answers_the_call_in_progress(places: tuple[Path, Path], tmp_path: Path) -> None:
    fabric = Path(shutil.copytree(places[0], tmp_path / "fabric"))
    with serving(fabric, tmp_path / "state", "--from", places[1], "--every=1d", "--mcp") as server:
        until(lambda: bool(server.ended_rounds()), "the first round is over")
        (fabric / "checks").mkdir()
        (fabric / "checks" / "slow.py").write_text("import time\ntime.sleep(600)\n", encoding="utf-8")
        with ThreadPoolExecutor(1) as pool:
            answer = pool.submit(call, server)
            until(lambda: bool(server.forks()), "the call has a process")
            (pid,) = server.forks()
            assert server.end() == 0
            reported = answer.result(60).data["result"]
        assert (reported["isError"], reported["content"][0]["text"]) == (True, "the server stops; try again later")
        until(lambda: is_gone(pid), "its process has ended")
        assert "Traceback" not in server.output()
        assert "CancelledError" not in server.output()
