"""The JSON API: answers conform to its OpenAPI document, for every path."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from openapi_spec_validator import validate
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from netkit.serve.guard import MOST_WRONG
from netkit.serve.openapi import openapi
from tests.command import run
from tests.serve.server import Answer, Running

pytestmark = pytest.mark.daemon
OF_A_FABRIC = (
    "status",
    "now",
    "causes",
    "causes?device=leaf02&check=bgp.*&verdict=fail&limit=1",
    "deploys",
    "runs",
    "runs?limit=1",
    "runs/latest",
    "findings",
    "findings?verdict=skipped&limit=7&offset=3",
    "findings?device=leaf*&check=bgp.*",
    "states",
    "states?verdict=pass",
    "devices",
    "devices/leaf01",
    "devices/spine02",
    "trends",
    "silences",
)
ASKED = (*OF_A_FABRIC, *(f"fabrics/small/{path}" for path in OF_A_FABRIC), "fabrics", "openapi.json")
FLEET = "/api/v1/fleet"
"""Of a server with a fleet: tests/fleet/test_serve.py."""
WRONG = (
    "runs?x=1",
    "now?x=1",
    "causes?verdict=bad",
    "runs?limit=x",
    "runs?before=x",
    "findings?verdict=bad",
    "findings?limit=501",
    "states?offset=-1",
)
ALIKE = ("runs/latest?x=1", "devices?x=1", "devices/leaf01?x=1", "trends?x=1", "openapi.json?x=1", "runs?limit=0")
MISSING = (
    "fleet",
    "fabrics/none/now",
    "runs/none",
    "devices/none",
    "none",
    "findings?run=none",
    "runs/..%2f..%2fdiary",
)


def checked(answer: Answer, template: str) -> Any:
    """Validate an answer by the document; return its data."""
    document = openapi()
    reported = resolved(document["paths"][template]["get"]["responses"][str(answer.code)])
    (media, content), *_ = reported["content"].items()
    assert answer.headers["content-type"] == media
    registry = Registry().with_resource("urn:api", DRAFT202012.create_resource(document))
    schema = {"$ref": content["schema"]["$ref"].replace("#", "urn:api#")}
    problems = [error.message for error in Draft202012Validator(schema, registry=registry).iter_errors(answer.data)]
    assert problems == [], (template, problems)
    return answer.data


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    if "$ref" not in part:
        return part
    found: Any = openapi()
    for name in part["$ref"].removeprefix("#/").split("/"):
        found = found[name]
    return dict(found)


def template_of(path: str) -> str:
    """The path of the document that matches a request."""
    asked = re.sub(r"^fabrics/[^/]+/", "fabrics/{fabric}/", path.partition("?")[0])
    if f"/api/v1/{asked}" in openapi()["paths"]:
        return f"/api/v1/{asked}"
    return "/api/v1/" + re.sub(r"(runs|devices)/[^/]+$", lambda found: f"{found[1]}/{{{found[1][:-1]}}}", asked)


def test_the_document_is_openapi() -> None:
    validate(openapi())
    for schema in openapi()["components"]["schemas"].values():
        validator_for(schema, Draft202012Validator).check_schema(schema)


def test_the_command_prints_the_document() -> None:
    done = run("serve", "--openapi")
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, openapi(), "")


def test_every_path_of_the_document_is_requested() -> None:
    readable = {path for path, reported in openapi()["paths"].items() if "get" in reported}
    assert {template_of(path) for path in ASKED} == readable - {FLEET}


@pytest.mark.parametrize("path", ASKED)
def test_answers_conform_to_the_document(server: Running, path: str) -> None:
    answer = server.ask(f"/api/v1/{path}")
    assert answer.code == 200
    assert re.fullmatch(r'"[0-9a-f]{32}"', answer.headers["etag"])
    checked(answer, template_of(path))


@pytest.mark.parametrize(
    ("code", "path"), [*((400, path) for path in (*WRONG, *ALIKE)), *((404, path) for path in MISSING)]
)
def test_an_unanswerable_request_has_a_reason(server: Running, code: int, path: str) -> None:
    answer = server.ask(f"/api/v1/{path}")
    assert answer.code == code
    assert (
        checked(answer, template_of(path) if template_of(path) in openapi()["paths"] else "/api/v1/runs")["status"]
        == code
    )


def test_a_rejected_request_is_a_problem_document(server: Running) -> None:
    answer = server.ask("/api/v1/runs", token="")
    assert (answer.code, checked(answer, "/api/v1/runs")["title"]) == (401, "Unauthorized")


def test_every_rejection_is_a_problem_document(server: Running) -> None:
    def title(code: int, **asked: str) -> str:
        answer = server.ask("/api/v1/runs", **asked)
        assert answer.code == code
        return str(checked(answer, "/api/v1/runs")["title"])

    assert title(421, Host="evil.example") == "Misdirected request"
    assert title(405, method="POST") == "Method not allowed"
    wrong = {"token": "wrong", "source": "127.0.0.9"}
    assert {title(401, **wrong) for _ in range(MOST_WRONG)} == {"Unauthorized"}
    assert title(429, **wrong) == "Too many requests"


def test_findings_are_those_of_netkit_check(server: Running) -> None:
    report = server.get("runs/latest")
    found = server.get("findings?limit=500")
    assert found["total"] == report["counts"]["fail"] + report["counts"]["warn"] + report["counts"]["error"]
    assert {one["verdict"] for one in found["items"]} == {"fail"}
    assert server.get("findings?verdict=skipped")["total"] == report["counts"]["skipped"]
    assert [one["device"] for one in server.get("findings?check=bgp.*")["items"]] == ["leaf02"]
    assert server.get("findings?device=spine*")["items"] == []


def pages(server: Running, path: str) -> Iterator[list[Any]]:
    while path:
        part = server.get(path)
        yield part["items"]
        path = (part["next"] or "").removeprefix("/api/v1/")


def test_pages_are_consecutive_to_the_end(server: Running) -> None:
    whole = server.get("findings?verdict=skipped&limit=500")["items"]
    parts = list(pages(server, "findings?verdict=skipped&limit=100"))
    assert [len(part) for part in parts[:-1]] == [100] * (len(whole) // 100)
    assert [one for part in parts for one in part] == whole


def test_states_list_failures_and_since_when(server: Running) -> None:
    (run_,) = server.get("runs")["items"]
    found = server.get("states")["items"]
    assert {one["device"]: one["check"] for one in found} == {
        "leaf01": "load.errors",
        "leaf02": "bgp.sessions",
        "spine02": "reached",
        "gpu01": "reached",
        "gpu02": "reached",
    }
    assert {one["since_s"] for one in found} == {run_["taken_s"]}


def test_open_causes_are_those_of_the_report_with_their_start(server: Running) -> None:
    (run_,) = server.get("runs")["items"]
    found = server.get("causes")
    assert found["total"] == 2
    more = {"since_s": run_["taken_s"], "seen_s": run_["taken_s"], "run": run_["run"], "is_new": True, "is_seen": True}
    reported = [{name: one[name] for name in one.keys() - more.keys() - {"id"}} for one in found["items"]]
    assert reported == server.get("runs/latest")["causes"]
    assert all(more.items() <= one.items() for one in found["items"])
    assert [one["head"]["device"] for one in server.get("causes?check=bgp.*")["items"]] == ["leaf02"]
    assert server.get("causes?verdict=warn")["items"] == []
    now = server.get("now")
    assert (now["causes"], now["counts"]) == (
        found["items"],
        {"error": 0, "fail": 2, "warn": 0, "unreached": 3, "silenced": 0},
    )
    assert [one["device"] for one in now["unreached"]] == ["gpu01", "gpu02", "spine02"]


def test_a_device_includes_its_findings(server: Running) -> None:
    found = server.get("devices/leaf02")
    assert (found["device"]["state"], [cause["head"]["check"] for cause in found["causes"]]) == (
        "fail",
        ["bgp.sessions"],
    )
    assert server.get("devices/spine01")["causes"] == []
