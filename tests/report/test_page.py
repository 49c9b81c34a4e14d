"""The HTML report and its data, without a browser."""

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from netkit.facts import Facts
from netkit.facts.device import Neighbor
from netkit.judge import Verdict
from netkit.report.page import Reported, Series, Tally, Trends, document, page, page_json
from netkit.report.page.frame import asset
from netkit.report.page.port import DesignedPort, rows
from netkit.report.page.table import column, cut, rounded, table
from netkit.serve import api
from tests import intents
from tests.judge.scenes import fabric as scenes_fabric
from tests.judge.scenes import observation, scene
from tests.report.seen import (
    HOSTILE,
    LONG,
    SMALL,
    WIDE,
    all_dim,
    built,
    burst,
    dim,
    misnamed,
    paused,
    reported,
    unreached,
    worn,
)

TALLY = Tally("run01", 1.0, Verdict.WARN, 0, 1, 0, 90, 0)
SERIES = Series("leaf01", "swp1s0/1", "rx_dbm", ((1.0, -2.0), (2.0, -3.0)))


@pytest.mark.parametrize(("system", "shown"), [("RZ1.leaf01.example.com", None), ("RZ1.leaf02", "RZ1.leaf02")])
def test_a_neighbour_is_the_designed_one_with_its_domain_too(system: str, shown: str | None) -> None:
    seen = observation("gpu01", Facts(neighbors={"rail0": (Neighbor(system, "swp1s0"),)}))
    place = DesignedPort("rail0", "rail", "RZ1.leaf01", "swp1s0", 400.0)
    (row,) = rows(scene(scenes_fabric(), seen).devices["gpu01"], (place,), ())
    assert (row["neighbor"], row["neighbor_port"]) == (shown, None)


class Elements(HTMLParser):
    """The elements of a page, and the data in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.found and self.found[-1] == ("script", {"type": "application/json", "id": "data"}):
            self.data += data


def sick() -> Any:
    return document(reported(leaf01=dim, leaf02=paused, spine01=unreached))


def test_the_data_in_the_page_is_the_data_as_json() -> None:
    run = reported(leaf01=dim, leaf02=misnamed(HOSTILE))
    assert json.loads(Elements(page(run)).data) == document(run) == json.loads(page_json(run))


def test_a_clean_fabric_is_called_clean_with_the_number_of_checks() -> None:
    found = document(reported())
    assert (found["state"], found["verdict"], found["exit_code"], found["causes"]) == ("pass", "clean", 0, [])
    assert found["counts"]["examined"] > 100
    assert found["counts"]["reached"] == found["counts"]["devices"] == len(SMALL.switches)
    assert {device["state"] for device in found["devices"]} == {"pass"}


def test_with_an_unreached_device_a_fabric_is_not_called_clean() -> None:
    found = document(reported(spine01=unreached))
    assert (found["state"], found["verdict"], found["counts"]["unreached"]) == ("unreached", "not known to be clean", 1)
    states = {device["name"]: device["state"] for device in found["devices"]}
    assert states == {**dict.fromkeys(states, "pass"), "spine01": "unreached"}


def test_states_follow_the_worst_finding_of_a_device_and_of_a_port() -> None:
    found = sick()
    states = {device["name"]: device["state"] for device in found["devices"]}
    assert (states["leaf01"], states["leaf02"], states["spine01"]) == ("fail", "fail", "unreached")
    ports = found["devices"][0]["ports"]["columns"]
    assert ports["state"]["but"] == {"0": "fail"}
    assert ports["margin"] == {"all": 6, "but": {"0": -1.5}}


def test_each_metric_of_a_port_is_a_number_or_unknown_never_a_guess() -> None:
    found = {device["name"]: device["ports"]["columns"] for device in sick()["devices"]}
    assert found["leaf02"]["pause"]["but"] == {"0": 30000}
    assert found["leaf02"]["ecn"]["but"] == {"0": 1670}
    assert found["leaf02"]["rx_pause/3"] == {"all": None, "but": {"0": 900000}}
    assert "pause" not in found["spine01"]


def test_peaks_of_the_window_are_in_bytes_and_as_shares_of_their_limits() -> None:
    found = {device["name"]: device["ports"]["columns"] for device in document(reported(leaf01=burst))["devices"]}
    profile = SMALL.switch("leaf01").ports[0].profile
    assert profile.headroom is not None
    output = {
        "queue": rounded(90_000_000 / profile.ecn.max_bytes, 3),
        "queue_peak_bytes/3": 900_000,
        "headroom": rounded(4_000_000 / profile.headroom.xoff_bytes, 3),
        "headroom_peak_bytes/3": 40_000,
    }
    columns = {name: column for name, column in found["leaf01"].items() if name.startswith(("queue", "headroom"))}
    assert columns == {name: {"all": None, "but": {"0": value}} for name, value in output.items()}
    assert not any(name in found["leaf02"] for name in output)


def test_causes_come_worst_first_with_evidence_and_remedy() -> None:
    causes = sick()["causes"]
    verdicts = [cause["verdict"] for cause in causes]
    assert verdicts == sorted(verdicts, key=["error", "fail", "warn"].index)
    light, pause = causes
    assert pause["head"]["evidence"] == {"victims": "gpu01:rail1 — leaf02:swp1s0", "window": "30.0 s", "state": "delta"}
    assert light["head"]["remedy"].startswith("clean the connectors")
    assert (light["layer"], light["devices"][0]) == ("physical", "leaf01")


def test_every_port_and_device_links_to_its_causes_also_omitted_ones() -> None:
    fabric = built(intents.on_platform("nvue", "5.13.0", WIDE))
    found = document(reported(fabric, leaf01=all_dim, leaf02=all_dim))
    (cause,) = (cause for cause in found["causes"] if cause["symptoms_left_out"])
    number = found["causes"].index(cause)
    for device in found["devices"][:2]:
        wrong, causes = (device["ports"]["columns"][name] for name in ("state", "causes"))
        assert (device["causes"], wrong, causes) == ([number], {"all": "fail"}, {"all": str(number)})
        assert api.device(found, device["name"])["causes"] == [cause]
    assert cause["places"] > 10


@pytest.mark.parametrize(
    "sick", [{}, {"leaf01": dim, "leaf02": paused, "spine01": unreached}, {"leaf01": worn}, {"leaf01": burst}]
)
def test_the_data_is_valid_by_its_schema(sick: Any) -> None:
    run = reported(trends=Trends((TALLY,), (SERIES,)), **sick)
    schema = json.loads(asset("report.schema.json"))
    Draft202012Validator.check_schema(schema)
    stored = Reported(run.judged, run.fabric, None, 3, "run01", notes=("the intent has changed",))
    for one in (run, stored):
        Draft202012Validator(schema).validate(document(one))


def test_no_text_of_a_device_becomes_an_element_or_ends_the_data() -> None:
    plain, hostile = page(reported()), page(reported(leaf01=misnamed(HOSTILE), spine01=unreached))
    tags = [tag for tag, _ in Elements(hostile).found]
    assert tags.count("script") == [tag for tag, _ in Elements(plain).found].count("script") == 2
    assert "img" not in tags
    data = Elements(hostile).data
    assert not set("<>&\u2028\u2029\u202e\x1b") & set(data)
    assert json.loads(data)["causes"] != []


def test_a_very_long_name_is_truncated() -> None:
    text = page(reported(leaf01=misnamed(LONG)))
    assert LONG[:60] in text
    assert LONG[:500] not in text
    assert len(text) < 200_000
    assert cut("a" * 500, 10) == "a" * 9 + "…"
    assert cut("\x1b[2J", 20) == "\\x1b[2J"


def test_the_page_requests_nothing_and_runs_only_its_own_script() -> None:
    text = page(reported())
    elements = Elements(text).found
    policy = next(attrs["content"] for tag, attrs in elements if attrs.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S{44}'; style-src 'sha256-\S{44}'; img-src data:; "
        r"base-uri 'none'; form-action 'none'",
        policy,
    )
    linked = [attrs[name] for _, attrs in elements for name in ("src", "href") if name in attrs]
    assert all(one is not None and one.startswith(("#", "data:")) for one in linked)
    for forbidden in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch("):
        assert forbidden not in text


def test_a_column_states_the_common_value_once() -> None:
    assert column([1, 1, 1, 1, 2]) == {"all": 1, "but": {"4": 2}}
    assert column([1, 2, 3]) == {"each": [1, 2, 3]}
    assert column([True, True, True, True, 1]) == {"all": True, "but": {"4": 1}}
    assert table([{"a": None, "b": 1}, {"b": 1}]) == {"rows": 2, "columns": {"b": {"all": 1}}}


@pytest.mark.parametrize(
    ("value", "output"), [(None, None), (float("nan"), None), (float("inf"), None), (3.0, 3), (1.23456e-9, 1.235e-09)]
)
def test_numbers_keep_their_significant_digits(value: float | None, output: float | None) -> None:
    assert rounded(value) == output
