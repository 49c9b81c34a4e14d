"""Facts from the output of SONiC switches: complete, of several releases, and malformed."""

import fnmatch
import json
import os
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netkit.facts import Absent, Facts
from netkit.facts.device import KINDS, Neighbor
from netkit.facts.optic import Lane, Module
from netkit.platforms.sonic import facts as routing
from netkit.platforms.sonic.facts import CONFIG, views
from netkit.platforms.view import View, ViewSubject
from tests.conftest import UPDATE
from tests.facts.hostile import STRANGE, changed
from tests.facts.sonic.case import CASES, FILES, FOLDER, SUBJECT, parsed, texts
from tests.lanes import examples

VIEWS = views(ViewSubject("leaf01", ports=("Ethernet0", "Ethernet8"), lossless=(3,)))
OF_OTHERS = {"lookups", "probes", "nics", "host", "lags", "mlag"}
STEP = 41


def of(view: View, case: str) -> Facts:
    return view.parse(*texts(case, view))


def whole(case: str, ports: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for view in views(ViewSubject("leaf01", ports=ports, lossless=SUBJECT.lossless)):
        found |= {kind: fact for kind, fact in parsed(of(view, case)).items() if kind in view.yields}
    return dict(sorted(found.items()))


@pytest.mark.parametrize("case", CASES)
def test_facts_match_the_expected_file(case: str) -> None:
    ports = ("Ethernet0",) if case.startswith("202305") else ("Ethernet0", "Ethernet8")
    file = FOLDER / case / "facts.json"
    found = whole(case, ports)
    if os.environ.get(UPDATE):
        file.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    assert found == json.loads(file.read_text(encoding="utf-8"))


def test_there_are_cases() -> None:
    assert len(CASES) >= 3
    assert set(FILES) == {command for view in VIEWS for command in view.commands}


def test_views_yield_every_kind_that_is_not_of_a_host() -> None:
    assert set().union(*(view.yields for view in VIEWS)) == set(KINDS) - OF_OTHERS


def test_unused_ports_are_left_out_where_they_only_cost_time() -> None:
    found = whole(CASES[-1], ("Ethernet0",))
    for kind in ("qos", "lines"):
        assert set(found[kind]) == {"Ethernet0"}
    assert {at.partition("/")[0] for table in found["counters"].values() for at in table} == {"Ethernet0"}
    assert {at.partition("/")[0] for at in found["buffers"]} == {"Ethernet0"}


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: "+".join(sorted(view.yields)))
@pytest.mark.parametrize("text", STRANGE, ids=range(len(STRANGE)))
def test_an_unparsable_answer_is_absent_with_a_reason(view: View, text: str) -> None:
    found = view.parse(*(text for _ in view.commands))
    for kind in view.yields:
        fact = getattr(found, kind)
        assert not isinstance(fact, Absent) or fact.reason
        assert parsed(found) is not None
        if text in {"", "null"} and kind != "adaptive_routing":
            assert isinstance(fact, Absent), kind


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("view", VIEWS, ids=lambda view: "+".join(sorted(view.yields)))
def test_an_answer_may_be_truncated_anywhere(view: View, case: str) -> None:
    given = texts(case, view)
    for index, text in enumerate(given):
        for end in (*range(0, len(text), STEP), *range(max(0, len(text) - 30), len(text))):
            assert isinstance(view.parse(*given[:index], text[:end], *given[index + 1 :]), Facts)


@pytest.mark.parametrize("case", CASES)
def test_a_truncated_dump_is_absent_and_not_partial(case: str) -> None:
    for view in VIEWS:
        first, *rest = texts(case, view)
        if first.startswith("{") and "sonic-db-dump" in view.commands[0]:
            found = view.parse(first[: len(first) // 2], *rest)
            assert all(isinstance(getattr(found, kind), Absent) for kind in view.yields)


@settings(max_examples=examples(60))
@given(st.text(max_size=200), st.sampled_from(VIEWS))
def test_any_text_is_accepted(text: str, view: View) -> None:
    assert isinstance(view.parse(*(text for _ in view.commands)), Facts)


@settings(max_examples=examples(80))
@given(st.data(), st.sampled_from(VIEWS), st.sampled_from(CASES))
def test_an_answer_may_have_any_type(data: st.DataObject, view: View, case: str) -> None:
    assert isinstance(view.parse(*(data.draw(changed(text)) for text in texts(case, view))), Facts)


def test_without_bgpd_the_reason_says_so() -> None:
    said = "bgpd is not running\nBuilding configuration...\n\nCurrent configuration:\n!\nend\n"
    assert routing.sessions(said).sessions == Absent("bgpd does not run")


def test_no_table_with_a_secret_is_requested() -> None:
    secret = ("SNMP_USER|a", "SNMP_COMMUNITY|a", "SNMP_AGENT_ADDRESS_CONFIG|a", "TACPLUS|global", "TACPLUS_SERVER|a")
    more = ("RADIUS|global", "RADIUS_SERVER|a", "LDAP|global", "NTP_KEY|1", "MACSEC_PROFILE|a", "BGP_NEIGHBOR|a")
    users = ("SSH_SERVER|POLICIES", "BGP_SESSIONS|a", "BGP_MONITORS|a", "RESTAPI|certs", "GNMI|certs", "KDUMP|config")
    pattern = CONFIG.split("'")[1]
    assert [key for key in (*secret, *more, *users) if fnmatch.fnmatchcase(key, pattern)] == []


def row(key: str, **fields: str) -> dict[str, Any]:
    return {key: {"type": "hash", "value": fields}}


def test_a_module_without_thresholds_has_none() -> None:
    (view,) = (view for view in VIEWS if "modules" in view.yields)
    ends = ("lowalarm", "lowwarning", "highwarning", "highalarm")
    zeros = {f"{name}{end}": "0.0" for name in ("temp", "vcc", "txbias") for end in ends}
    dark = {f"{name}{end}": "-inf" for name in ("rxpower", "txpower") for end in ends}
    state = {
        **row("TRANSCEIVER_INFO|Ethernet0", model="M"),
        **row("TRANSCEIVER_DOM_SENSOR|Ethernet0", temperature="41.5", rx1power="-1.5"),
        **row("TRANSCEIVER_DOM_THRESHOLD|Ethernet0", **{**zeros, **dark}),
    }
    found = view.parse(json.dumps(state), "{}").modules
    assert found == {"Ethernet0": Module(part="M", temperature_c=41.5, lanes={1: Lane(rx_dbm=-1.5)})}


@pytest.mark.parametrize(
    ("peers", "is_up"),
    [
        ("[]", False),
        ('[{"interface": "Ethernet0", "status": "up"}]', True),
        ('[{"interface": "Ethernet4", "status": "up"}]', False),
        ("bfdd is not running", None),
    ],
)
def test_a_session_that_bfd_does_not_list_has_no_bfd(peers: str, is_up: bool | None) -> None:
    summary = json.dumps({"peers": {"Ethernet0": {"state": "Established"}}})
    found = routing.sessions(f"{summary}\n{peers}\n").sessions
    assert not isinstance(found, Absent)
    assert found["Ethernet0"].is_bfd_up is is_up


def test_of_several_routes_the_best_counts_and_down_ports_are_no_next_hops() -> None:
    hops = [
        {"dev": "Ethernet0"},
        {"dev": "Ethernet4", "flags": ["dead", "linkdown"]},
        {"dev": "Ethernet8", "flags": []},
    ]
    shown = [
        {"dst": "10.0.0.1", "nexthops": hops},
        {"dst": "10.0.0.1", "dev": "Ethernet12", "metric": 200},
        {"dst": "default", "dev": "Ethernet4", "flags": ["linkdown"]},
    ]
    found = routing.routes(json.dumps(shown)).routes
    assert found == {"10.0.0.1/32": ("Ethernet0", "Ethernet8"), "0.0.0.0/0": ()}


def test_a_name_with_a_lone_surrogate_can_be_written() -> None:
    (view,) = (view for view in VIEWS if "neighbors" in view.yields)
    shown = json.dumps(row("LLDP_ENTRY_TABLE:Ethernet0", lldp_rem_sys_name="caf\udce9"))
    assert view.parse(shown).neighbors == {"Ethernet0": (Neighbor("caf?"),)}
