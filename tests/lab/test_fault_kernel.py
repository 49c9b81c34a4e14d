"""Kernel faults on a running lab: each has the effect that its description names, and heals without a trace."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from netkit.design import Fabric
from netkit.errors import LabError
from netkit.lab.faults import CATALOG, breaking, check, parse_options
from tests import intents
from tests.lab.bench import OutsideBench, benches
from tests.lab.running import intent, needs_lab, running, until, write_fabric

pytestmark = [needs_lab, pytest.mark.whole]
LEAF, HOST = "leaf01", "gpu01"
HOOK = re.compile(r'hook egress device "(\S+)" priority filter (. \d+);')


@dataclass(frozen=True)
class Scene:
    """A small lab, and functions to inject faults."""

    fabric: Fabric
    nodes: dict[str, OutsideBench]

    def broken(self, name: str, place: str, *options: str) -> "Broken":
        return Broken(self, name, place, options)

    def run(self, device: str, command: str) -> str:
        return self.nodes[device].out(*command.split())

    def json(self, device: str, command: str) -> list[dict[str, object]]:
        return list(json.loads(self.run(device, command)))

    def state(self) -> dict[str, str]:
        """Everything that a fault of the kernel could leave behind, without values that change by themselves."""
        commands = ("ip -br link", "ip -br -4 addr", "ip rule", "nft list tables")
        script = "; ".join(commands) + "; ip -4 route show table all type unicast | grep -v 'proto bgp' | sort"
        found = {name: node.out("sh", "-c", script) for name, node in self.nodes.items()}
        return {name: _without_peers(text) for name, text in found.items()}


@dataclass(frozen=True)
class Broken:
    """A fault for the length of a block."""

    scene: Scene
    name: str
    place: str
    options: tuple[str, ...]

    def __enter__(self) -> Scene:
        fabric, nodes = self.scene.fabric, self.scene.nodes
        breaking.make(check(fabric, self.name, self.place, parse_options(self.options)), fabric, nodes)
        return self.scene

    def __exit__(self, *_exception: object) -> None:
        fabric, nodes = self.scene.fabric, self.scene.nodes
        breaking.heal(check(fabric, self.name, self.place, parse_options(self.options)), fabric, nodes)


def _without_peers(text: str) -> str:
    """A listing without the order of links and the indexes of their peers."""
    words = (" ".join(word.partition("@")[0] for word in line.split()) for line in text.splitlines())
    return "\n".join(sorted(words))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    values = intent()
    fabric = intents.fabric(values)
    folder = tmp_path_factory.mktemp("kernel")
    with running(write_fabric(folder / "fabric", values), name="k") as lab:
        yield Scene(fabric, benches(lab, fabric, folder / "nodes"))


def pings(scene: Scene, source: str, target: str, size: int = 56) -> bool:
    words = f"ping -q -c 1 -W 1 -M do -s {size} -I {source} {target}".split()
    return scene.nodes[HOST].run(*words).exit_code == 0


def addresses(fabric: Fabric, name: str) -> list[str]:
    return [nic.address for host in fabric.hosts if host.name == name for nic in host.nics]


def test_every_fault_of_the_kernel_is_tested_here() -> None:
    tried = set(Path(__file__).read_text(encoding="utf-8").split('"'))

    assert {kind.name for kind in CATALOG.values() if kind.maker == "kernel"} <= tried


def test_healing_leaves_no_trace(scene: Scene) -> None:
    before = scene.state()
    faults = [
        ("wrong-mtu", f"{LEAF}:swp33s0"),
        ("lossy", f"{LEAF}:swp1s1"),
        ("missing-host-route", HOST),
        ("wrong-source-route", f"{HOST}:rail0"),
        ("ecn-unmarked", LEAF),
        ("cnp-remarked", f"{LEAF}:swp1s0"),
        ("bgp-session-down", f"{LEAF}:swp33s0"),
        ("link-flap", f"{HOST}:rail1"),
        ("slow-link-up", f"{HOST}:rail1"),
        ("slow-link-up", f"{LEAF}:swp33s0"),
        ("wrong-cable", f"{HOST}:rail0"),
        ("wrong-cable", f"{LEAF}:swp33s0"),
    ]
    assert {name for name, _ in faults} == {kind.name for kind in CATALOG.values() if kind.maker == "kernel"}
    for name, place in faults:
        with scene.broken(name, place):
            pass
        until(lambda: scene.state() == before, f"{name} leaves no trace")


def test_a_wrong_mtu_loses_large_packets_and_passes_small_ones(scene: Scene) -> None:
    own, far = addresses(scene.fabric, HOST)[0], addresses(scene.fabric, "gpu02")[0]
    until(lambda: pings(scene, own, far, 8000), "large packets pass")
    with scene.broken("wrong-mtu", f"{LEAF}:swp1s1", "bytes=1500"):
        assert scene.json(LEAF, "ip -j link show dev swp1s1")[0]["mtu"] == 1500
        assert not pings(scene, own, far, 8000)
        until(lambda: pings(scene, own, far), "small packets pass")
    until(lambda: pings(scene, own, far, 8000), "large packets pass again")


def test_a_lossy_port_loses_long_packets_and_everything_on_request(scene: Scene) -> None:
    own, far = addresses(scene.fabric, HOST)[0], addresses(scene.fabric, "gpu02")[0]
    until(lambda: pings(scene, own, far, 8000), "large packets pass")
    with scene.broken("lossy", f"{LEAF}:swp1s1", "percent=100"):
        assert (pings(scene, own, far, 8000), pings(scene, own, far, 3000)) == (False, True)
    with scene.broken("lossy", f"{LEAF}:swp1s1", "percent=100", "above_bytes=0"):
        assert not pings(scene, own, far)
    until(lambda: pings(scene, own, far, 8000), "large packets pass again")


def test_a_missing_route_is_missing_in_every_table(scene: Scene) -> None:
    def routes() -> set[str]:
        lines = scene.run(HOST, "ip -4 route show table all").splitlines()
        return {" ".join(line.split()) for line in lines if " via " in line}

    before = routes()
    with scene.broken("missing-host-route", f"{HOST}:rail0"):
        lost = before - routes()
    assert len(lost) >= 1
    assert len({route.split()[0] for route in lost}) == 1
    assert all("dev rail0" in route for route in lost)
    prefix = next(iter(lost)).split()[0]
    with scene.broken("missing-host-route", HOST, f"prefix={prefix}"):
        assert {route.split()[0] for route in before - routes()} == {prefix}
    assert routes() == before
    with (
        pytest.raises(LabError, match="no such route with a gateway"),
        scene.broken("missing-host-route", HOST, "prefix=203.0.113.0/24"),
    ):
        pass


def test_a_wrong_source_route_sends_a_rail_out_by_another(scene: Scene) -> None:
    own, far = addresses(scene.fabric, HOST)[0], addresses(scene.fabric, "gpu02")[0]

    def device() -> object:
        return scene.json(HOST, f"ip -j route get {far} from {own}")[0]["dev"]

    assert device() == "rail0"
    with scene.broken("wrong-source-route", f"{HOST}:rail0"):
        assert device() == "rail1"
    assert device() == "rail0"


def test_a_session_goes_down_while_its_link_stays_up(scene: Scene) -> None:
    def sessions() -> dict[str, bool]:
        text = scene.nodes[LEAF].out("vtysh", "-c", "show bgp summary json")
        peers = json.loads(text)["ipv4Unicast"]["peers"]
        return {name: peer["state"] == "Established" for name, peer in peers.items()}

    until(lambda: sessions() == {"swp33s0": True, "swp33s1": True}, "both sessions")
    with scene.broken("bgp-session-down", f"{LEAF}:swp33s0"):
        until(lambda: sessions() == {"swp33s0": False, "swp33s1": True}, "one session falls")
        assert "LOWER_UP" in str(scene.json(LEAF, "ip -j link show dev swp33s0")[0]["flags"])
    until(lambda: sessions() == {"swp33s0": True, "swp33s1": True}, "both sessions again")


def test_a_link_flaps_at_both_ends_until_it_is_healed(scene: Scene) -> None:
    def changes(device: str, port: str) -> int:
        (link,) = scene.json(device, f"ip -j -s -s link show dev {port}")
        stats = link["stats64"]
        assert isinstance(stats, dict)
        return int(stats["tx"]["carrier_changes"])

    before = changes(HOST, "rail0"), changes(LEAF, "swp1s0")
    with scene.broken("link-flap", f"{HOST}:rail0", "up_s=0.5", "down_s=0.5"):
        until(lambda: changes(HOST, "rail0") >= before[0] + 6, "the host sees it flap")
        assert changes(LEAF, "swp1s0") >= before[1] + 4
    own, far = (addresses(scene.fabric, name)[0] for name in (HOST, "gpu02"))
    until(lambda: pings(scene, own, far), "it is up again")


def test_a_slow_link_goes_down_once_and_a_swapped_module_is_fast(scene: Scene) -> None:
    def outage_s(device: str, port: str) -> float:
        """The length of the last outage by zebra; negative while the link is down."""
        reported = json.loads(scene.nodes[device].out("vtysh", "-d", "zebra", "-c", "show interface json"))[port]
        went, came = (reported.get(key, "0").rpartition(" ")[2] for key in ("lastLinkDown", "lastLinkUp"))
        return seconds(came) - seconds(went)

    def seconds(time_of_day: str) -> float:
        hours, minutes, rest = time_of_day.split(":")
        return int(hours) * 3600 + int(minutes) * 60 + float(rest)

    with scene.broken("slow-link-up", f"{LEAF}:swp33s0", "seconds=4"):
        until(lambda: not is_up(scene, LEAF, "swp33s0") and not is_up(scene, "spine01", "swp1s0"), "both ends go")
        until(lambda: is_up(scene, LEAF, "swp33s0") and is_up(scene, "spine01", "swp1s0"), "and come back")
        until(lambda: 3.5 < outage_s("spine01", "swp1s0") < 10, "the far end saw how long")
    until(lambda: 0 < outage_s("spine01", "swp1s0") < 3, "the new module is quick")
    with scene.broken("slow-link-up", f"{HOST}:rail0", "seconds=600"):
        until(lambda: not is_up(scene, HOST, "rail0") and is_up(scene, HOST, "rail1"), "the link of one NIC goes")
    until(lambda: is_up(scene, HOST, "rail0"), "healing does not wait for it")


def is_up(scene: Scene, device: str, port: str) -> bool:
    return "LOWER_UP" in str(scene.json(device, f"ip -j link show dev {port}")[0]["flags"])


def test_swapped_rails_lead_to_the_other_leaf(scene: Scene) -> None:
    own = addresses(scene.fabric, HOST)
    gateways = [nic.gateway for host in scene.fabric.hosts if host.name == HOST for nic in host.nics]

    def answers() -> list[bool]:
        return [pings(scene, f"rail{rail}", gateway) for rail, gateway in enumerate(gateways)]

    assert len(own) == 2
    until(lambda: answers() == [True, True], "both rails reach their leaves")
    with scene.broken("wrong-cable", f"{HOST}:rail0"):
        assert answers() == [False, False]
    until(lambda: answers() == [True, True], "both rails reach their leaves again")


def test_congestion_marking_is_removed_from_one_switch_and_from_one_port(scene: Scene) -> None:
    with scene.broken("ecn-unmarked", LEAF), scene.broken("cnp-remarked", f"{LEAF}:swp1s0", "dscp=4"):
        listing = scene.run(LEAF, "nft list ruleset")
    hooks = set()
    for text in listing.split("table netdev ")[1:]:
        table = text.split()[0]
        hooks |= {(table, *found) for found in HOOK.findall(text) if table.startswith("fault_")}
    ports = ("swp1s0", "swp1s1", "swp33s0", "swp33s1")

    assert hooks == {
        *(("fault_ecn_unmarked_leaf01", port, "- 10") for port in ports),
        ("fault_cnp_remarked_leaf01_swp1s0", "swp1s0", "+ 10"),
    }
