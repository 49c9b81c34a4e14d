"""Facts of GPU hosts of a running lab: as designed, with faults, and when commands fail."""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from pydantic import TypeAdapter

from netkit.access.connect import connect
from netkit.design.fabric import Host
from netkit.errors import AccessError
from netkit.facts import Absent, Facts
from netkit.facts.counter import COUNTERS
from netkit.facts.device import KINDS, Interface, Neighbor
from netkit.facts.host import Lookup, NicFacts
from netkit.facts.qos import Ecn, PortQos
from netkit.observe import subject
from netkit.observe.assemble import facts
from netkit.platforms.linux.driver import LinuxDriver
from netkit.platforms.linux.facts import interface, views
from netkit.platforms.view import Reply, View
from tests.lab.running import intent, needs_lab, running, until, write_fabric
from tests.platforms.linux_driver.bench import Bench, bench

pytestmark = needs_lab
INTENT = intent()
TOLD = {
    *("system", "file_systems", "interfaces", "neighbors", "modules", "lines", "qos"),
    *("lookups", "probes", "nics", "host", "counters"),
}
ANY = TypeAdapter(Facts)
SHORT_S = 9


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with running(write_fabric(tmp_path_factory.mktemp("fabric"), INTENT)) as lab:
        found = bench(lab, INTENT, tmp_path_factory.mktemp("work"))
        until(lambda: all(len(neighbors(found, host)) == 2 for host in found.hosts), "LLDP has heard all")
        yield found


def neighbors(up: Bench, host: Host) -> Mapping[str, tuple[Neighbor, ...]]:
    found = look(up, host).neighbors
    return {} if isinstance(found, Absent) else found


def opened(up: Bench, host: Host, timeout_s: float = 60) -> LinuxDriver:
    driver = connect(replace(up.endpoints[host.name], timeout_s=timeout_s), lambda name: name)
    assert isinstance(driver, LinuxDriver)
    driver.open()
    return driver


def look(up: Bench, host: Host, kinds: frozenset[str] = frozenset(KINDS)) -> Facts:
    driver = opened(up, host)
    with contextlib.closing(driver):
        return asked(up, host, driver, kinds)[0]


def asked(
    up: Bench, host: Host, driver: LinuxDriver, kinds: frozenset[str] = frozenset(KINDS)
) -> tuple[Facts, Mapping[str, Reply]]:
    wanted = [view for view in views(subject(up.fabric, host)) if view.yields & kinds]
    commands = tuple(dict.fromkeys(command for view in wanted for command in view.commands))
    replies = dict(zip(commands, driver.ask(commands), strict=True))
    return facts(wanted, replies), replies


def present(found: Facts) -> set[str]:
    return {kind for kind in KINDS if not isinstance(getattr(found, kind), Absent)}


def flat(found: Any, path: str = "") -> Iterator[tuple[str, object]]:
    rows = found.items() if isinstance(found, dict) else enumerate(found) if isinstance(found, list) else None
    if rows is None:
        yield path, found
        return
    for key, value in rows:
        yield from flat(value, f"{path}.{key}" if path else str(key))


def changed(before: Facts, after: Facts) -> set[str]:
    """The kinds of facts that changed and where, without values that always change."""
    one, other = (dict(flat(ANY.dump_python(found, mode="json"))) for found in (before, after))
    paths = {path for path in {*one, *other} if one.get(path) != other.get(path)}
    moving = ("counters.", "system.uptime_s", "lines.rail", "probes.")
    names = (path.split(".") for path in paths if not path.startswith(moving) and "age_s" not in path)
    return {".".join(words[:3]) for words in names}


def test_a_healthy_host_reports_every_kind(up: Bench) -> None:
    for host in up.hosts:
        assert present(look(up, host)) == TOLD


def test_its_facts_are_as_designed(up: Bench) -> None:
    host, lossless = up.hosts[0], up.fabric.lossless
    found = look(up, host)
    assert not isinstance(found.system, Absent)
    assert (found.system.hostname, found.system.model, found.system.serial != "") == (host.name, "DGXH100", True)
    assert isinstance(found.interfaces, dict)
    assert found.interfaces == {
        nic.interface: Interface(True, True, 400.0, host.mtu_bytes, "rs", parsed.mac, link_up_s=parsed.link_up_s)
        for nic in host.nics
        if (parsed := found.interfaces[nic.interface])
    }
    assert all(0 < (parsed.link_up_s or 0) < 30 for parsed in found.interfaces.values())
    assert isinstance(found.neighbors, dict)
    assert {name: [(one.system, one.port) for one in ends] for name, ends in found.neighbors.items()} == {
        nic.interface: [(nic.leaf, nic.leaf_port)] for nic in host.nics
    }
    gateways = {nic.interface: nic.gateway for nic in host.nics}
    assert found.lookups == tuple(
        Lookup(*one, out_interface=one[1], gateway=gateways[one[1]]) for one in subject(up.fabric, host).lookups
    )
    assert isinstance(found.qos, dict)
    pfc = frozenset({lossless.roce.priority})
    qos = PortQos(
        trust="dscp",
        dscp_to_priority=dict(enumerate(lossless.dscp_to_priority)),
        pfc_rx=pfc,
        pfc_tx=pfc,
        is_global_pause=False,
        weights={0: 10, 1: 0, 2: 0, 3: 90, 4: 0, 5: 0, 7: 0},
        strict=frozenset({lossless.cnp.priority}),
        priority_to_class=dict(enumerate(lossless.priority_to_class)),
        ecn={lossless.roce.priority: Ecn(is_on=True)},
        cable_m=7.0,
        cnp_dscp=lossless.cnp_dscp,
        cnp_priority=lossless.cnp.priority,
        data_tos=lossless.tos,
        cm_tos=lossless.tos,
        ecn_notifies=pfc,
        ecn_reacts=pfc,
        priority_to_buffer={priority: int(priority in pfc) for priority in range(8)},
    )
    assert found.qos == {nic.interface: qos for nic in host.nics}


def test_its_nics_are_as_designed(up: Bench) -> None:
    host = up.hosts[0]
    found = look(up, host)
    assert isinstance(found.nics, dict)
    kept = found.nics["rail0"].settings
    assert {key: kept[key] for key in ("LINK_TYPE_P1", "ROCE_CC_PRIO_MASK_P1", "CNP_DSCP_P1", "CNP_802P_PRIO_P1")} == {
        "LINK_TYPE_P1": "2",
        "ROCE_CC_PRIO_MASK_P1": "8",
        "CNP_DSCP_P1": "48",
        "CNP_802P_PRIO_P1": "6",
    }
    assert found.nics == {
        nic.interface: NicFacts(
            interface=nic.interface,
            pci=nic.pci,
            rdma=nic.rdma,
            part="MCX75310AAS-NEA",
            psid="MT_0000000838",
            firmware="28.43.1014",
            driver="mlx5_core",
            driver_version="24.10-1.1.4",
            pci_gt_s=32.0,
            pci_width=16,
            pci_full_gt_s=32.0,
            pci_full_width=16,
            read_request_bytes=4096,
            has_relaxed_ordering=True,
            active_mtu_bytes=4096,
            roce_gid_index=3,
            settings=kept,
            next_settings=kept,
            numa=0,
            is_adaptive_routing_forced=False,
        )
        for nic in host.nics
    }
    assert not isinstance(found.host, Absent)
    for nic in host.nics:
        assert found.host.addresses[nic.interface] == (f"{nic.address}/{nic.prefix_length}",)
    assert found.host.default_routes is not None
    assert {nic.interface for nic in host.nics} & {way.interface for way in found.host.default_routes} == set()
    assert found.host.nearest_nic == {"0000:1b:00.0": "rail0", "0000:43:00.0": "rail1"}
    assert (found.host.bridges_with_acs, found.host.is_iommu_on) == ((), False)
    assert found.host.sysctls["net.ipv4.conf.rail1.arp_announce"] == "2"
    versions = {"mlx5_core": "24.10-1.1.4", "nvidia": "550.90.07", "nvidia_peermem": "550.90.07", "mft": "4.34.1-10"}
    assert found.host.tools == versions
    assert found.host.nccl is not None
    assert found.host.nccl["NCCL_IB_TC"] == str(up.fabric.lossless.tos)


def test_its_modules_and_links_are_measured_lane_by_lane(up: Bench) -> None:
    found = look(up, up.hosts[0], frozenset({"modules", "lines", "counters"}))
    assert isinstance(found.modules, dict)
    assert isinstance(found.lines, dict)
    for name in ("rail0", "rail1"):
        module, line = found.modules[name], found.lines[name]
        assert (module.kind, module.identifier, set(module.lanes)) == ("optic", "OSFP 800G-2xDR4", {1, 2, 3, 4})
        assert set(module.limits) == {"rx_dbm", "tx_dbm", "bias_ma", "temperature_c", "voltage_v"}
        assert (line.fec, line.effective_ber, set(line.lane_ber)) == ("rs", 0.0, {1, 2, 3, 4})
        assert line.ber is not None
        assert 0 < line.ber < 1e-6
    assert isinstance(found.counters, dict)
    sources = (interface.QUEUE, interface.PORT, interface.ALWAYS_KERNEL, interface.PRIORITY, interface.FEC)
    names = {name for source in sources for name in source.values()} | {"carrier_changes", "fec_bin"}
    assert set(found.counters) == names
    assert names <= set(COUNTERS)
    assert set(found.counters["rx_pause"]) == {"rail0/3", "rail1/3"}, "pauses are there only while PFC is on"
    assert set(found.counters["fec_bin"]) == {f"rail{rail}/{symbols}" for rail in (0, 1) for symbols in range(16)}


FAULTS = (
    ("dim-optic", "gpu01:rail0", {"modules.rail0.lanes"}),
    ("mixed-optic-firmware", "gpu01:rail1", {"modules.rail1.firmware"}),
    ("pfc-off", "gpu01:rail0", {"qos.rail0.pfc_rx", "qos.rail0.pfc_tx", "qos.rail0.priority_to_buffer"}),
    ("wrong-dscp-map", "gpu01:rail1", {"qos.rail1.dscp_to_priority"}),
    ("hot-optic", "gpu01:rail0", {"modules.rail0.temperature_c"}),
    ("wrong-mtu", "gpu01:rail1", {"interfaces.rail1.mtu_bytes", "nics.rail1.active_mtu_bytes"}),
)


def test_faults_of_a_host_are_visible_where_they_are_and_nowhere_else(up: Bench) -> None:
    host = up.hosts[0]
    before = look(up, host)
    for name, place, _ in FAULTS:
        assert up.lab.lab("break", name, place).returncode == 0
    wanted = set[str]().union(*(where for _, _, where in FAULTS))
    until(lambda: changed(before, look(up, host)) == wanted, f"facts differ at {sorted(wanted)}")
    assert up.lab.lab("heal", "--all").returncode == 0
    until(lambda: changed(before, look(up, host)) == set(), "all is as before")


def test_a_missing_route_and_a_wrong_source_route_are_visible_in_lookups(up: Bench) -> None:
    host = up.hosts[0]
    before = look(up, host, frozenset({"lookups"})).lookups
    assert up.lab.lab("break", "missing-host-route", "gpu01:rail0").returncode == 0
    missing = look(up, host, frozenset({"lookups"})).lookups
    assert up.lab.lab("heal", "--all").returncode == 0
    assert isinstance(before, tuple)
    assert isinstance(missing, tuple)
    ends = {(one.interface, one.gateway) for one, other in zip(missing, before, strict=True) if one != other}
    assert ends == {("rail0", "")}, "the kernel takes the far end for a neighbour on the wire"
    assert look(up, host, frozenset({"lookups"})).lookups == before


def test_swapped_cables_are_visible_in_the_neighbours(up: Bench) -> None:
    host = up.hosts[1]
    right = [(nic.interface, nic.leaf, f"{host.name}:{nic.interface}") for nic in host.nics]
    swapped = [(name, *end[1:]) for (name, *_), end in zip(right, reversed(right), strict=True)]

    def seen() -> list[tuple[str, str, str]]:
        return [(name, ends[0].system, ends[0].description) for name, ends in sorted(neighbors(up, host).items())]

    assert seen() == right
    assert up.lab.lab("break", "wrong-cable", "gpu02:rail0").returncode == 0
    until(lambda: seen() == swapped, "LLDP has heard the other leaf on each rail, by the name of its port")
    assert up.lab.lab("heal", "--all").returncode == 0
    until(lambda: seen() == right, "LLDP has heard the right leaves")


def test_a_nic_that_pauses_its_leaf_counts_sent_pauses(up: Bench) -> None:
    host = up.hosts[0]

    def counts() -> Mapping[str, Mapping[str, int]]:
        found = look(up, host, frozenset({"counters"})).counters
        assert not isinstance(found, Absent)
        return found

    assert up.lab.lab("break", "pause-storm", "gpu01:rail0").returncode == 0
    first = counts()

    def grew(name: str, place: str) -> int:
        return counts()[name][place] - first[name][place]

    until(lambda: grew("tx_pause_us", "rail0/3") > 100_000, "rail0 has sent pauses")
    until(lambda: grew("pci_stalls", "rail0") > 0, "rail0 has stalled")
    assert grew("rx_pause_us", "rail0/3") < grew("tx_pause_us", "rail0/3") / 100
    assert up.lab.lab("heal", "--all").returncode == 0


@contextlib.contextmanager
def broken(up: Bench, *fault: str) -> Iterator[LinuxDriver]:
    """A driver with a short timeout, of a host with a failing management plane."""
    host = up.hosts[0]
    driver = opened(up, host, SHORT_S)
    assert up.lab.lab("break", fault[0], host.name, *fault[1:]).returncode == 0
    try:
        yield driver
    finally:
        driver.close()
        assert up.lab.lab("heal", "--all").returncode == 0


def test_hanging_tools_lose_only_their_own_facts(up: Bench) -> None:
    with broken(up, "hangs", "after=1") as driver:
        found, replies = asked(up, up.hosts[0], driver)
    assert present(found) == {"system", "neighbors", "lookups", "host", "interfaces", "nics", "counters"}
    reasons = {reply.failure for reply in replies.values() if reply.failure}
    assert "does not end" in reasons
    assert isinstance(found.modules, Absent)


def test_a_hanging_shell_is_reported(up: Bench) -> None:
    with broken(up, "hangs") as driver:
        found, replies = asked(up, up.hosts[0], driver)
    assert present(found) == set()
    assert {reply.failure for reply in replies.values()} == {
        f"not answered: did not answer within {SHORT_S} s: /bin/sh"
    }


def test_garbage_is_not_a_fact(up: Bench) -> None:
    with broken(up, "garbage") as driver:
        found, _ = asked(up, up.hosts[0], driver)
    assert present(found) == set()


def test_a_slow_host_that_answers_is_read_to_the_end(up: Bench) -> None:
    """All its answers together take longer than the time limit of each."""
    with broken(up, "slow", "seconds=0.7") as driver:
        found, _ = asked(up, up.hosts[0], driver)
    assert present(found) == TOLD


def test_an_unreachable_host_is_an_access_error(up: Bench) -> None:
    with broken(up, "unreachable") as driver, pytest.raises(AccessError):
        asked(up, up.hosts[0], driver)


def test_each_view_yields_kinds_that_are_known(up: Bench) -> None:
    found: list[View] = list(views(subject(up.fabric, up.hosts[0])))
    assert set[str]().union(*(view.yields for view in found)) == TOLD
    light = {kind for view in found if not view.is_costly for kind in view.yields}
    assert light == TOLD - {"probes"}, "the light profile has all that sends nothing"
