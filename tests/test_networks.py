"""Networks beside the rails: cabling, stable numbers, and the configuration of each NOS."""

from collections import Counter
from collections.abc import Callable, Iterator
from ipaddress import IPv4Interface, IPv4Network
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit import plan
from netkit.design import Fabric, Switch
from netkit.design.fabric import Access
from netkit.lab.personalities.eos import configuration
from netkit.lab.personalities.eos import switch_state as eos_state
from netkit.lab.personalities.nvue.rules import broken
from netkit.lab.personalities.nvue.schema import CumulusSwitch, Issue, checked, schema
from netkit.lab.personalities.nvue.state import switch_state
from netkit.lab.personalities.nvue.tree import Tree, load
from netkit.plan.model import Partial, ReachabilityLoss
from netkit.platforms.compare import MODELS, compare
from netkit.platforms.linux import rails
from netkit.render import Engine, render
from netkit.report.plan_text import step_lines
from tests import intents
from tests.schema import eos

ENGINE = Engine()
NVUE_RELEASES = ("5.9.0", "5.14.0", "5.16.1", "5.17.0")


def fabric(*networks: dict[str, Any], **changes: Any) -> Fabric:
    return intents.fabric(intents.values({"networks": list(networks), **changes}))


def access(switch: Switch) -> Access:
    assert switch.access is not None
    return switch.access


def files(designed: Fabric, name: str) -> dict[str, str]:
    device = designed.device(name)
    assert device is not None
    (found,) = render(designed, [device], ENGINE)
    return dict(found.files)


def attached(designed: Fabric) -> Iterator[tuple[str, str, str, str]]:
    for switch in designed.switches:
        for port in switch.access.ports if switch.access else ():
            yield switch.name, port.name, port.peer, port.peer_port


@given(st.data())
def test_later_installations_renumber_nothing(data: st.DataObject) -> None:
    is_pair, count = data.draw(st.booleans()), data.draw(st.integers(1, 2))
    names = [f"nic{number}" for number in range(2 * count if is_pair else count)]
    entry = intents.storage(switches={"pair": is_pair}, hosts={"interfaces": names})
    few = data.draw(st.dictionaries(st.integers(1, 4), st.sets(st.integers(1, 4), min_size=1), min_size=1, max_size=3))
    units = [{"unit": unit, "hosts": ",".join(map(str, sorted(slots)))} for unit, slots in few.items()]
    named = {"host": "gpu-u{unit}-{slot}"}
    before = fabric({**entry, "servers": []}, units=units, names=named)
    more = intents.storage(
        name="backup",
        switches={"asn": 4_200_090_001, "loopback": "10.254.0.8", "management": "192.0.2.240"},
        vlans=[{"number": 300, "prefix": "10.204.0.0/22"}],
        hosts={"interfaces": ["nic8", "nic9"], "bond": "bond9"},
    )
    after = fabric(entry, more, units=[{"unit": "1-4", "hosts": 4}], names=named)
    assert set(attached(before)) <= set(attached(after))
    for host in before.hosts:
        later = next(one for one in after.hosts if one.name == host.name)
        assert set(host.attachments) <= set(later.attachments)
    for switch in before.switches:
        if switch.access:
            same = access(after.switch(switch.name))
            assert (switch.loopback, switch.asn) == (after.switch(switch.name).loopback, after.switch(switch.name).asn)
            assert (switch.access.vlans, switch.access.pair) == (same.vlans, same.pair)
            numbers = {lag.peer: lag.number for lag in same.lags}
            assert all(numbers[lag.peer] == lag.number for lag in switch.access.lags)


@given(st.integers(1, 4), st.sampled_from([1, 2]))
def test_every_nic_has_one_port_and_every_lag_one_number(hosts: int, per_switch: int) -> None:
    names = [f"nic{number}" for number in range(2 * per_switch)]
    designed = fabric(intents.storage(hosts={"interfaces": names}), units=[{"unit": "1-3", "hosts": hosts}])
    ends = Counter((peer, port) for _, _, peer, port in attached(designed) if peer.startswith("gpu"))
    assert ends == Counter((host.name, name) for host in designed.hosts for name in names)
    first, second = (access(designed.switch(name)) for name in ("storage01", "storage02"))
    assert [(lag.number, lag.peer, len(lag.ports)) for lag in first.lags] == [
        (lag.number, lag.peer, len(lag.ports)) for lag in second.lags
    ]
    assert {len(lag.ports) for lag in first.lags if lag.peer.startswith("gpu")} == {per_switch}
    addresses = [IPv4Interface(one.address) for host in designed.hosts for one in host.attachments]
    assert len(set(addresses)) == len(designed.hosts)
    assert all(address.network == IPv4Network("10.200.0.0/22") for address in addresses)


def applied(designed: Fabric, switch: Switch) -> tuple[Tree, CumulusSwitch]:
    chassis = CumulusSwitch(switch.model, switch.version)
    items = load(files(designed, switch.name)["startup.yaml"])
    assert isinstance(items, list)
    issues: list[Issue] = []
    tree = checked(schema(chassis.version), items[0]["set"], issues)
    assert isinstance(tree, dict)
    assert (issues, broken(tree, chassis)) == ([], [])
    return tree, chassis


@pytest.mark.parametrize("version", NVUE_RELEASES)
@pytest.mark.parametrize("is_pair", [True, False])
def test_nvue_accepts_the_rendered_files_and_realises_the_design(version: str, *, is_pair: bool) -> None:
    entry = intents.storage(
        switches={"version": version, "pair": is_pair},
        hosts={} if is_pair else {"interfaces": ["nic0"]},
        servers=[
            {"name": "nas1", "ports": ["swp45"], "vlan": 201, "tagged": [200]},
            {"name": "bmc1", "ports": ["swp46"], "lag": False},
        ],
    )
    designed = fabric(entry, external=[intents.STORAGE_PEER])
    for switch in (one for one in designed.switches if one.access):
        state = switch_state(*applied(designed, switch))
        found = {port.name: (port.access_vlan, port.tagged_vlans) for port in state.ports}
        wanted = {port.name: (port.untagged, port.tagged) for port in access(switch).ports}
        assert found == wanted | {port.name: (0, ()) for port in switch.external}
        (routed,) = (vlan for vlan in state.vlans if vlan.addresses)
        own = access(switch).vlans[0]
        assert routed.addresses == ((own.address, "10.200.0.1/32") if is_pair else ("10.200.0.1/22",))
        assert state.has_peer is is_pair
        model = MODELS["nvue"]
        assert model.router is not None
        assert model.router(model.parse(files(designed, switch.name))).unknown == ()


@pytest.mark.parametrize("version", ["4.32.3F", "4.33.2F", "4.35.1F"])
@pytest.mark.parametrize("is_pair", [True, False])
def test_eos_accepts_the_rendered_files_and_realises_the_design(version: str, *, is_pair: bool) -> None:
    entry = intents.storage_eos(
        switches={"version": version, "pair": is_pair},
        hosts={} if is_pair else {"interfaces": ["nic0"]},
        servers=[
            {"name": "nas1", "ports": ["Ethernet45/1"], "vlan": 201, "tagged": [200]},
            {"name": "bmc1", "ports": ["Ethernet46/1"], "lag": False},
        ],
    )
    for switch in (one for one in fabric(entry).switches if one.access):
        assert eos.line_problems(files(fabric(entry), switch.name)["eos.cfg"]) == []
    designed = fabric(entry, external=[intents.EOS_PEER])
    for switch in (one for one in designed.switches if one.access):
        text = files(designed, switch.name)["eos.cfg"]
        names = [*(port.name for port in access(switch).ports), *(port.name for port in switch.external)]
        config = configuration.parse(text, configuration.grammar_of(switch), names)
        assert list(configuration.complaints(config)) == []
        state = eos_state.switch_state(config, {name: name for name in names})
        found = {port.name: (port.access_vlan, port.tagged_vlans) for port in state.ports}
        wanted = {port.name: (port.untagged, port.tagged) for port in access(switch).ports}
        assert found == wanted | {port.name: (0, ()) for port in switch.external}
        (routed,) = (vlan for vlan in state.vlans if vlan.addresses)
        own = access(switch).vlans[0]
        assert routed.addresses == ((own.address, "10.200.0.1/32") if is_pair else ("10.200.0.1/22",))
        first = switch.name == "storage01"
        assert state.peer_addresses == ((f"169.254.0.{0 if first else 1}/31",) if is_pair else ())
        lags = {f"Port-Channel{lag.number}": tuple(port.name for port in lag.ports) for lag in access(switch).lags}
        peers = {"Port-Channel1000": tuple(port.name for port in access(switch).peer_links)} if is_pair else {}
        channels = [name for (name,), _ in config.sections("interface") if name.startswith("Port-Channel")]
        assert {name: eos_state.members(config, name) for name in channels} == lags | peers
        model = MODELS["eos"]
        assert model.router is not None
        parsed = model.parse(files(designed, switch.name))
        assert model.router(parsed).unknown == ()
        # The switch prints the same, with lists of VLANs as ranges.
        assert model.parse({"eos.cfg": configuration.body(config)}) == parsed


def test_only_the_switch_with_a_peer_filters_and_both_exchange_its_routes() -> None:
    designed = fabric(intents.storage(), external=[intents.STORAGE_PEER])
    texts = [files(designed, name)["startup.yaml"] for name in ("storage01", "storage02")]
    assert [text.count("PL-EXTERNAL-IN-isp-a:") for text in texts] == [1, 0]
    assert [text.count("remote-as: internal") for text in texts] == [1, 1]
    assert not any("FABRIC" in text for text in texts)
    alone = fabric(intents.storage())
    assert "remote-as" not in files(alone, "storage01")["startup.yaml"]


@pytest.mark.parametrize(
    ("entry", "port", "find", "put"),
    [
        (intents.storage(), "swp2", "id: 2\n", "id: 77\n"),
        (intents.storage_eos(), "Ethernet1/5", "channel-group 2 ", "channel-group 77 "),
        (intents.storage_eos(), "Ethernet1/5", "   mlag 2\n", "   mlag 77\n"),
    ],
)
def test_a_change_of_a_lag_affects_its_ports(entry: dict[str, Any], port: str, find: str, put: str) -> None:
    designed = fabric(entry)
    intended = files(designed, "storage02")
    running = {name: text.replace(find, put) for name, text in intended.items()}
    assert running != intended
    made = plan.make(designed, {"storage02": plan.Running(running)}, {"storage02": intended})
    assert made.devices[0].blast.links == (f"gpu02:nic1–storage02:{port}",)


def planned_part(before: Fabric, after: Fabric, *names: str) -> plan.Plan:
    """The plan for some devices of a fabric."""
    old, new = ({name: files(one, name) for name in one.names} for one in (before, after))
    running = {name: plan.Running(dict(old[name])) for name in new}
    whole = plan.make(after, running, new, is_part=True)
    return plan.limited(after, whole, names or [*new], plan.sides_of(running, new))


HOSTS, SWITCHES = ("gpu01", "gpu02", "gpu05", "gpu06"), ("storage01", "storage02")
OTHER_PREFIX = [{"number": 200, "prefix": "10.210.0.0/22"}, {"number": 201}]
OTHER_GATEWAY = [{"number": 200, "prefix": "10.200.0.0/22", "gateway": "10.200.3.254"}, {"number": 201}]
OTHER_NUMBER = [{"number": 300, "prefix": "10.200.0.0/22"}, {"number": 201}]
ONE_LESS = [{"number": 200, "prefix": "10.200.0.0/22"}]
WIDER = [{"number": 200, "prefix": "10.200.0.0/21"}, {"number": 201}]
ONE_MORE = [{"number": 200, "prefix": "10.200.0.0/22"}, {"number": 201}, {"number": 202, "prefix": "10.212.0.0/22"}]


@pytest.mark.parametrize("storage", [intents.storage, intents.storage_eos])
@pytest.mark.parametrize(
    ("vlans", "limit", "missing", "moved"),
    [
        (OTHER_PREFIX, SWITCHES[:1], (*HOSTS, SWITCHES[1]), HOSTS),
        (OTHER_PREFIX, SWITCHES, HOSTS, HOSTS),
        (OTHER_PREFIX, HOSTS[:1], (*HOSTS[1:], *SWITCHES), HOSTS[:1]),
        (OTHER_PREFIX, (*SWITCHES, *HOSTS[1:]), HOSTS[:1], HOSTS[:1]),
        (OTHER_GATEWAY, SWITCHES, HOSTS, HOSTS),
        (OTHER_NUMBER, SWITCHES[1:], SWITCHES[:1], HOSTS),
    ],
)
def test_a_plan_names_the_hosts_that_lose_a_network(
    storage: Callable[..., dict[str, Any]],
    vlans: list[dict[str, Any]],
    limit: tuple[str, ...],
    missing: tuple[str, ...],
    moved: tuple[str, ...],
) -> None:
    before, after = fabric(storage()), fabric(storage(vlans=vlans))
    part, whole = planned_part(before, after, *limit), planned_part(before, after)
    assert part.partial == Partial(ReachabilityLoss(), missing, moved=moved)
    worse, *_ = step_lines(part)
    assert worse == f"worse than before: {', '.join(moved)} cut off from a network beside the rails"
    assert whole.partial is None
    for name in SWITCHES:
        found = whole.device(name)
        assert found is not None
        assert (found.blast.hosts, found.blast.moved, found.blast.is_disruptive) == (HOSTS, HOSTS, True)
    assert plan.read(plan.write(part)) == part


@pytest.mark.parametrize("storage", [intents.storage, intents.storage_eos])
@pytest.mark.parametrize("vlans", [WIDER, ONE_MORE, ONE_LESS])
def test_a_wider_prefix_or_a_vlan_without_hosts_takes_no_network_from_a_host(
    storage: Callable[..., dict[str, Any]], vlans: list[dict[str, Any]]
) -> None:
    part = planned_part(fabric(storage()), fabric(storage(vlans=vlans)), *SWITCHES)
    assert len(part.changed) == len(SWITCHES)
    assert part.partial is None
    assert not part.blast.moved
    assert '"moved"' not in plan.write(part)  # a plan of an earlier release lacks it


@pytest.mark.parametrize("backend", ["netplan", "networkd"])
@pytest.mark.parametrize("interfaces", [["nic0", "nic1"], ["nic0"]])
def test_a_host_gets_the_files_that_verify_it(backend: str, interfaces: list[str]) -> None:
    routes, is_lag = ["0.0.0.0/0", "10.201.0.0/16"], len(interfaces) > 1
    entry = intents.storage(switches={"pair": is_lag}, hosts={"interfaces": interfaces, "routes": routes})
    designed, plain = (fabric(*given, hosts={"backend": backend}) for given in ([entry], []))
    for host in designed.hosts:
        (one,) = host.attachments
        own = files(designed, host.name)
        beside = {name for name in own if name.startswith("15-netkit-")}
        name = f"15-netkit-{one.interface}"
        assert beside == {f"{name}.network", *((f"{name}.netdev", f"{name}-members.network") if is_lag else ())}
        rest = {file: text for file, text in own.items() if file not in beside | {"install.txt"}}
        assert rest == {file: text for file, text in files(plain, host.name).items() if file != "install.txt"}
        *_, found = rails.described(own)
        assert (found.interface, found.address, found.mtu_bytes) == (one.interface, one.address, 9000)
        assert [(look.to, look.via, look.unbound) for look in found.lookups] == [
            ("223.255.255.255", "10.200.0.1", True),
            ("10.201.255.254", "10.200.0.1", True),
        ]


def test_the_rails_do_not_change() -> None:
    with_it, without = fabric(intents.storage()), fabric()
    for switch in without.switches:
        assert files(with_it, switch.name) == files(without, switch.name)


def test_a_switch_without_mlag_gets_it() -> None:
    """Rendered keys at the top of the tree are compared, and so deployed."""
    intended = files(fabric(intents.storage()), "storage01")
    items = yaml.safe_load(intended["startup.yaml"])
    trees = {
        name: [{"set": {key: value for key, value in items[0]["set"].items() if key != name}}]
        for name in items[0]["set"]
    }
    for name, tree in trees.items():
        found = compare(MODELS["nvue"], {"startup.yaml": yaml.safe_dump(tree)}, intended)
        assert {change.path[0] for change in found.changes} == {name}
