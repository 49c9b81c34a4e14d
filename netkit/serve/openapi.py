"""The API as an OpenAPI document: the parameters and answers of each path."""

import json
from functools import cache
from typing import Any, get_args

from netkit import __version__
from netkit.judge import Verdict
from netkit.judge.silence import EntryState
from netkit.report.page.frame import asset
from netkit.serve.query import LONGEST, MOST_ITEMS, USUAL_ITEMS
from netkit.serve.silencing import SilenceRequest

Schema = dict[str, Any]
TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
TIME: Schema = {"type": "number", "description": "seconds of the epoch"}
VERDICT: Schema = {"type": "string", "enum": [verdict.word for verdict in Verdict]}
API = "/api/v1"
DEFS, COMPONENTS = "#/$defs/", "#/components/schemas/"
OF_REPORT = "Report."
REFUSED = ("400", "404", "405", "421", "429", "503")
RUN_COUNTS = ("devices", "examined", "skipped", "absent", "unreached", "warnings", "failures", "errors", "silenced")


@cache
def openapi() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "netkit serve",
            "version": __version__,
            "summary": "What checks of fabrics found; read-only but for silences, where the server allows that.",
            "description": (
                "Texts of devices are cut, and what cannot be printed is escaped. Answers carry an ETag. "
                "Within v1 properties and parameters are only added."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "security": [{"token": []}],
        "paths": _paths(),
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {**_schemas(), **_of_report()},
            "responses": {
                "Unauthorized": _answer("no token, or a wrong one", "Problem", "application/problem+json"),
                "Problem": _answer("why it is not answered", "Problem", "application/problem+json"),
                "NotModified": {"description": "unchanged since the given ETag"},
            },
        },
    }


def _paths() -> dict[str, Any]:
    filters = [_filter("device"), _filter("check"), _filter("place"), _query("verdict", VERDICT, "with this verdict")]
    pages = [_limit(), _query("offset", COUNT, "how many items to skip")]
    run = _path_part("run", "the name of a run, or latest")
    before = _query("before", TEXT, "only runs before this one, by name")
    found = {
        "/api/v1/status": _get("status", "How the schedule goes", "Status"),
        "/api/v1/now": _get("now", "The current state of the fabric: the data of the first page", "Now"),
        "/api/v1/causes": _get(
            "causes",
            "All open causes, in the order of repair",
            "Causes",
            *filters[:2],
            filters[3],
            *pages,
        ),
        "/api/v1/deploys": _get("deploys", "The last deploys, the newest first", "Deploys"),
        "/api/v1/runs": _get("runs", "Stored runs, the newest first", "Runs", _limit(), before),
        "/api/v1/runs/{run}": _get("run", "The report on a run", "Report", run),
        "/api/v1/findings": _get(
            "findings",
            "The findings of a run, the worst first; by default those that do not pass",
            "Findings",
            _query("run", TEXT, "the name of a run; by default the latest"),
            *filters,
            *pages,
        ),
        "/api/v1/states": _get(
            "states",
            "The states of checks and since when, the worst first; by default those that do not pass",
            "States",
            *filters,
            *pages,
        ),
        "/api/v1/devices": _get("devices", "All devices in the latest run", "Devices"),
        "/api/v1/devices/{device}": _get(
            "device", "A device in the latest run", "Device", _path_part("device", "its name in the design")
        ),
        "/api/v1/trends": _get("trends", "Trends from run to run", "Trends"),
        "/api/v1/silences": {
            **_get("silences", "Silences with author, reason and end", "Silences"),
            **_change("post", "silence", "Silence something, or acknowledge what the newest run found", "201"),
        },
        "/api/v1/silences/{id}": _change(
            "delete",
            "unsilence",
            "End a silence or an acknowledgement",
            "200",
            _path_part("id", "its name"),
            {**_query("by", {**TEXT, "maxLength": LONGEST}, "the person who ends it"), "required": True},
        ),
    }
    return {
        **found,
        **{path.replace(API, f"{API}/fabrics/{{fabric}}"): _of_fabric(methods) for path, methods in found.items()},
        "/api/v1/fabrics": _get("fabrics", "All fabrics that the server or its store knows", "Fabrics"),
        "/api/v1/fleet": _get("fleet", "The sites of the fleet that reads devices for the server", "Fleet"),
        "/api/v1/openapi.json": _get("openapi", "This document", "Document"),
    }


def _of_fabric(methods: Schema) -> Schema:
    """Describe the same of a fabric that the path names; without it, the server's first is meant."""
    fabric = _path_part("fabric", "its key in /api/v1/fabrics")
    return {
        method: {
            **operation,
            "operationId": f"{operation['operationId']}_of_fabric",
            "parameters": [fabric, *operation.get("parameters", ())],
        }
        for method, operation in methods.items()
    }


def _get(operation: str, summary: str, schema: str, *parameters: Schema) -> Schema:
    problems = {code: {"$ref": "#/components/responses/Problem"} for code in REFUSED}
    tag = {"ETag": {"description": "identifies this answer, for If-None-Match", "schema": TEXT}}
    return {
        "get": {
            "operationId": operation,
            "summary": summary,
            **({"parameters": list(parameters)} if parameters else {}),
            "responses": {
                "200": {**_answer(summary, schema), "headers": tag},
                "304": {"$ref": "#/components/responses/NotModified"},
                "401": {"$ref": "#/components/responses/Unauthorized"},
                **problems,
            },
        }
    }


def _change(method: str, operation: str, summary: str, code: str, *parameters: Schema) -> Schema:
    """Describe a method that changes something: it needs the token itself, and a server that allows it."""
    codes = (*REFUSED, "403", *(("413", "415") if method == "post" else ()))
    body = {"required": True, "content": {"application/json": {"schema": _ref("SilenceRequest")}}}
    return {
        method: {
            "operationId": operation,
            "summary": summary,
            **({"parameters": list(parameters)} if parameters else {}),
            **({"requestBody": body} if method == "post" else {}),
            "responses": {
                code: _answer("what was done", "Said"),
                "401": {"$ref": "#/components/responses/Unauthorized"},
                **{one: {"$ref": "#/components/responses/Problem"} for one in codes},
            },
        }
    }


def _answer(description: str, schema: str, media: str = "application/json") -> Schema:
    return {"description": description, "content": {media: {"schema": _ref(schema)}}}


def _ref(schema: str) -> Schema:
    return {"$ref": f"{COMPONENTS}{schema}"}


def _query(name: str, schema: Schema, description: str) -> Schema:
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


def _filter(name: str) -> Schema:
    return _query(name, {**TEXT, "maxLength": LONGEST}, f"only of this {name}: a name, or a glob with * and ?")


def _limit() -> Schema:
    schema = {"type": "integer", "minimum": 1, "maximum": MOST_ITEMS, "default": USUAL_ITEMS}
    return _query("limit", schema, "how many items at most")


def _path_part(name: str, description: str) -> Schema:
    return {"name": name, "in": "path", "required": True, "description": description, "schema": TEXT}


def _object(**properties: Schema) -> Schema:
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def _many(item: Schema) -> Schema:
    return {"type": "array", "items": item}


def _or_none(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _paged(schema: str, **beside: Schema) -> Schema:
    following = {"type": ["string", "null"], "description": "the path of the next items; null after the last"}
    return _object(**beside, items=_many(_ref(schema)), total=COUNT, next=following)


def _schemas() -> dict[str, Schema]:
    place = {"check": TEXT, "device": TEXT, "place": TEXT, "verdict": VERDICT, "text": TEXT}
    details = {
        "remedy": TEXT,
        "layer": TEXT,
        "silenced": TEXT,
        "evidence": {"type": "object", "additionalProperties": TEXT},
    }
    about = dict.fromkeys(("name", "state", "role", "platform", "model", "failure"), TEXT)
    return {
        "Problem": _object(type=TEXT, title=TEXT, status=COUNT, detail=TEXT),
        "Document": {"type": "object"},
        "Status": _status(),
        **_now(),
        "Fabric": _fabric(),
        "Fabrics": _object(items=_many(_ref("Fabric"))),
        "Fleet": _fleet(),
        "Round": _round(),
        "Missed": _object(from_s=TIME, to_s=TIME, count=COUNT, reason=TEXT),
        "Run": _run(),
        "Runs": _paged("Run"),
        "Finding": _object(**place, **details),
        "Findings": _paged("Finding", run=TEXT),
        "State": _object(**place, since_s=TIME, seen_s=TIME),
        "States": _paged("State"),
        "Devices": _object(run=TEXT, items=_many(_object(**about, pod=COUNT, examined=COUNT))),
        "Device": _object(run=TEXT, device=_ref(f"{OF_REPORT}device"), causes=_many(_ref(f"{OF_REPORT}cause"))),
        "Trends": _trends(),
        "Silences": _object(is_changeable={"type": "boolean"}, items=_many(_ref("Silence"))),
        "Silence": _silence(),
        "SilenceRequest": SilenceRequest.model_json_schema(),
        "Said": _object(text=TEXT),
    }


def _status() -> Schema:
    totals = dict.fromkeys(("rounds_total", "missed_total", "failed_total"), COUNT)
    return _object(
        netkit=TEXT,
        fabric=TEXT,
        lab=TEXT,
        site=TEXT,
        every_s=NUMBER,
        next_s=TIME,
        started_s=TIME,
        clock=TEXT,
        **totals,
        rounds=_many(_ref("Round")),
        missed=_many(_ref("Missed")),
    )


def _counts() -> Schema:
    counts = _object(**dict.fromkeys(("error", "fail", "warn", "unreached", "silenced"), COUNT))
    return {**counts, "description": "causes by verdict, and devices that were not reached"}


def _fabric() -> Schema:
    flag: Schema = {"type": "boolean"}
    return _object(
        **dict.fromkeys(("fabric", "lab", "site", "text"), TEXT),
        key={**TEXT, "description": "its name in addresses"},
        page={**TEXT, "description": "the address of its page"},
        api={**TEXT, "description": "the address of its API"},
        is_scheduled={**flag, "description": "whether this server checks it"},
        is_part={**flag, "description": "whether it is one site of a fabric that this server checks at several"},
        state=_ref(f"{OF_REPORT}state"),
        counts=_counts(),
        checked_s={**_or_none(TIME), "description": "the last check of the whole fabric; null before the first"},
        every_s={**NUMBER, "description": "its interval: of the schedule, or judging by the last runs"},
        is_overdue={**flag, "description": "whether that check is too old to rely on"},
        trouble={**TEXT, "description": "why the store cannot be read; empty when it can"},
    )


def _fleet() -> Schema:
    worker = _object(
        **dict.fromkeys(("worker", "version"), TEXT),
        **dict.fromkeys(("at_s", "since_s"), TIME),
        done={**COUNT, "description": "jobs since it started"},
        refused=COUNT,
        verb={**TEXT, "description": "of the job that it carries out; empty if it is idle"},
        fabric=TEXT,
        shard=TEXT,
        deadline_s=TIME,
    )
    site = _object(
        site=TEXT,
        failure={**TEXT, "description": "why the broker does not answer; empty if it does"},
        waiting={**COUNT, "description": "jobs that no worker has received"},
        receivers={**COUNT, "description": "workers that are connected"},
        workers={**_many(worker), "description": "those that reported within the last minute"},
    )
    asked = {**_or_none(TIME), "description": "when the broker was asked; null if it was not yet"}
    return _object(asked_s=asked, problems=_many(TEXT), sites=_many(site))


def _now() -> dict[str, Schema]:
    """The schemas of the first page."""
    state = _ref(f"{OF_REPORT}state")
    unreached = _object(device=TEXT, reason=TEXT, silenced=TEXT, since_s=TIME, seen_s=TIME)
    well = _object(check=TEXT, device=TEXT, place=TEXT, text=TEXT)
    unknown = _object(
        kind={"type": "string", "enum": ["store", "stale", "round", "missed", "fleet"]},
        text=TEXT,
        since_s=_or_none(TIME),
    )
    return {
        "Now": _object(
            **dict.fromkeys(("fabric", "lab", "site", "text"), TEXT),
            is_scheduled={"type": "boolean", "description": "whether this server checks it"},
            state=state,
            counts=_counts(),
            looked={**_or_none(_ref("Looked")), "description": "the last check of the whole fabric"},
            later_part={**_or_none(_ref("Looked")), "description": "a later check of a part of it"},
            every_s=NUMBER,
            next_s={**_or_none(TIME), "description": "null when another server checks it"},
            checking_since_s={**_or_none(TIME), "description": "since when a check runs; null when none does"},
            unknown={**_many(unknown), "description": "why the state is partly or completely unknown"},
            causes=_many(_ref("OpenCause")),
            causes_left_out={**COUNT, "description": "/api/v1/causes has all of them"},
            places_left_out={**COUNT, "description": "bad places beyond the worst; /api/v1/states has all of them"},
            unreached=_many(unreached),
            unreached_left_out=COUNT,
            well={**_many(well), "description": "what passes again since the latest run"},
            well_left_out=COUNT,
            deploys=_many(_ref("Deploy")),
        ),
        "Looked": _object(
            run=TEXT, taken_s=TIME, devices=COUNT, checks=COUNT, unreached=COUNT, examined=COUNT, skipped=COUNT
        ),
        "OpenCause": _open_cause(),
        "Causes": _paged("OpenCause"),
        "Deploy": _deploy(),
        "Deploys": _object(items=_many(_ref("Deploy"))),
    }


def _open_cause() -> Schema:
    """The schema of a cause in a report, and since when it is open."""
    cause = _of_report()[f"{OF_REPORT}cause"]
    flag: Schema = {"type": "boolean"}
    return _object(
        id={**TEXT, "description": "stable while the cause is open"},
        **cause["properties"],
        since_s={**TIME, "description": "the first run with its current verdict"},
        seen_s={**TIME, "description": "the last run that judged it"},
        run={**TEXT, "description": "that run; empty if it is no longer stored"},
        is_new={**flag, "description": "whether the latest run found it, or found it worse or better"},
        is_seen={**flag, "description": "whether the latest run judged it; if not, it is in its last known state"},
    )


def _deploy() -> Schema:
    states = ["running", "unfinished", "superseded", "unknown", "done", "failed"]
    return _object(
        **dict.fromkeys(("run", "text", "who", "what", "reason", "commit"), TEXT),
        state={"type": "string", "enum": states},
        began_s=_or_none(TIME),
        stepped_s={**_or_none(TIME), "description": "the time of its last recorded step"},
        resumed_by=_many(TEXT),
        wave={**COUNT, "description": "the wave it is at, from 1; 0 when it has finished or not begun"},
        waves=COUNT,
        devices={"type": "object", "additionalProperties": COUNT, "description": "devices by result"},
        busy={**_many(TEXT), "description": "devices that are being changed"},
    )


def _round() -> Schema:
    kind = {"type": "string", "enum": ["check", "backup"]}
    code = {**_or_none({"type": "integer"}), "description": "null while it runs, or if it was killed"}
    return _object(kind=kind, begun_s=TIME, ended_s=_or_none(TIME), exit_code=code, run=TEXT, text=TEXT, end=TEXT)


def _run() -> Schema:
    texts = dict.fromkeys(("run", "fabric", "lab", "intent", "version", "text"), TEXT)
    state = _ref(f"{OF_REPORT}state")
    counts = dict.fromkeys(RUN_COUNTS, COUNT)
    code = {"type": "integer", "enum": [0, 1, 4]}
    more = {"taken_s": TIME, "window_s": NUMBER, "exit_code": code, "checks": _many(TEXT)}
    return _object(**texts, **counts, **more, verdict=VERDICT, state=state)


def _silence() -> Schema:
    texts = dict.fromkeys(("id", "site", "by", "why", "ticket"), TEXT)
    kinds = {"kind": {"enum": ["silence", "acknowledgement"]}, "state": {"enum": list(get_args(EntryState))}}
    lists = {"checks": _many(TEXT), "where": _many(TEXT)}
    return _object(**texts, **kinds, **lists, findings=COUNT, begins_s=TIME, until_s=_or_none(TIME))


def _trends() -> Schema:
    found = _moved(json.loads(asset("report.schema.json"))["properties"]["trends"])
    if "$ref" in found:
        found = _of_report()[found["$ref"].removeprefix(COMPONENTS)]
    return _object(run=TEXT, **found["properties"])


@cache
def _of_report() -> dict[str, Schema]:
    """The schema of a report; its parts become separate schemas."""
    schema: Schema = json.loads(asset("report.schema.json"))
    parts: dict[str, Schema] = schema.pop("$defs", {})
    schema.pop("$schema", None)
    named = {f"{OF_REPORT}{name}": _moved(part) for name, part in parts.items()}
    return {"Report": _moved(schema), **named}


def _moved(value: Any) -> Any:
    """Point the references of a schema to the components of the document."""
    if isinstance(value, list):
        return [_moved(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: one.replace(DEFS, COMPONENTS + OF_REPORT) if key == "$ref" else _moved(one) for key, one in value.items()
    }
