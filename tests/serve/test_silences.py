"""Silences through the server: visible to every token, changed only where permitted, and never by another site."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.cli.checked import checked
from tests.serve.server import TOKEN, Answer, Running, serving

pytestmark = pytest.mark.daemon
WANTED = {"check": "load.errors", "where": "leaf01:swp1s0", "until": "2d", "by": "alice", "why": "spare comes"}
FORM = {"content_type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def open_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, Path]]:
    fabric, file = checked(tmp_path_factory.mktemp("silences"))
    options = ("--from", file, "--every=1d", "--allow-silences")
    with serving(fabric, tmp_path_factory.mktemp("state"), *options) as running:
        running.await_run()
        yield running, fabric
        assert "Traceback" not in running.output()


def asked(server: Running, given: object = WANTED, **headers: str) -> Answer:
    body = given if isinstance(given, str) else json.dumps(given)
    return server.ask("/api/v1/silences", method="POST", body=body, **{"content_type": "application/json", **headers})


def test_without_the_option_nothing_can_be_changed(server: Running, places: tuple[Path, Path]) -> None:
    assert server.get("silences") == {"is_changeable": False, "items": []}
    assert asked(server).code == 403
    assert server.ask("/api/v1/silences/x?by=al", method="DELETE").code == 403
    assert server.ask("/silences", method="POST", body="check=load").code == 403
    assert "Add</button>" not in server.ask("/silences").text
    assert not (places[0] / "silences.yaml").exists()


def test_a_client_adds_and_ends_silences_with_the_token_and_it_is_logged(open_server: tuple[Running, Path]) -> None:
    server, fabric = open_server
    answer = asked(server)
    assert answer.code == 201, answer.text
    name = answer.data["text"].partition(":")[0]
    (item,) = server.get("silences")["items"]
    assert (item["id"], item["by"], item["why"], item["state"]) == (name, "alice", "spare comes", "active")
    known = {**WANTED, "kind": "acknowledgement", "check": "bgp.sessions", "where": "leaf02", "until": ""}
    assert "acknowledgement of bgp.sessions on leaf02:swp33s0" in asked(server, known).text
    assert "fault: BGP to spine01 is Idle" in (fabric / "silences.yaml").read_text(encoding="utf-8")
    assert server.ask(f"/api/v1/silences/{name}", method="DELETE").code == 400
    assert server.ask("/api/v1/silences/none?by=al", method="DELETE").code == 404
    assert server.ask(f"/api/v1/silences/{name}?by=bob", method="DELETE").code == 200
    assert [one["kind"] for one in server.get("silences")["items"]] == ["acknowledgement"]
    (log,) = server.state.glob("**/serve/silences.log")
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    assert [(one["by"], one["address"], one["exit_code"]) for one in lines] == [
        ("alice", "127.0.0.1", 0),
        ("alice", "127.0.0.1", 0),
        ("bob", "127.0.0.1", 0),
    ]
    assert log.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize(
    ("code", "given", "reported"),
    [
        (400, {**WANTED, "check": "load.eror"}, "did you mean load.errors?"),
        (400, {**WANTED, "until": ""}, "--until"),
        (400, {**WANTED, "until": "--everything"}, "is not a time"),
        (400, {**WANTED, "check": "--everything", "where": "--help"}, "no check"),
        (400, {**WANTED, "by": " "}, "by"),
        (400, {**WANTED, "lab": "x"}, "unknown key"),
        (400, "[]", "send an object"),
        (400, "{", "send an object"),
        (413, json.dumps({**WANTED, "why": "x" * 9000}), "the request is too long"),
    ],
)
def test_invalid_silences_are_refused(
    open_server: tuple[Running, Path], code: int, given: object, reported: str
) -> None:
    server, fabric = open_server
    before = (fabric / "silences.yaml").read_text(encoding="utf-8") if (fabric / "silences.yaml").exists() else ""
    answer = asked(server, given)
    assert (answer.code, reported in answer.text) == (code, True), answer.text
    after = (fabric / "silences.yaml").read_text(encoding="utf-8") if (fabric / "silences.yaml").exists() else ""
    assert after == before


def test_a_page_of_another_site_changes_nothing(open_server: tuple[Running, Path]) -> None:
    server, _ = open_server
    here = f"http://127.0.0.1:{server.port}"
    login = server.ask("/login", method="POST", token="", body=urlencode({"token": TOKEN}), origin=here, **FORM)
    cookie = login.headers["set-cookie"].partition(";")[0]
    page = server.ask("/silences", token="", cookie=cookie).text
    found = re.search(r'name="form" value="([0-9a-f]{64})"', page)
    assert found is not None
    fields = {**WANTED, "where": "leaf02", "kind": "silence", "ticket": "", "form": found[1]}

    def sent(fields: dict[str, str], **headers: str) -> int:
        return server.ask("/silences", method="POST", token="", body=urlencode(fields), **FORM, **headers).code

    number = len(server.get("silences")["items"])
    assert sent(fields, cookie=cookie) == 403
    assert sent(fields, cookie=cookie, origin="http://evil.example") == 403
    assert sent({**fields, "form": "0" * 64}, cookie=cookie, origin=here) == 403
    assert sent({**fields, "form": ""}, cookie=cookie, origin=here) == 403
    assert asked(server, WANTED, Authorization="", cookie=cookie).code == 403
    assert len(server.get("silences")["items"]) == number
    assert sent(fields, cookie=cookie, origin=here) == 200
    assert len(server.get("silences")["items"]) == number + 1
