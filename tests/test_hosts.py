"""The files of a GPU host, read by their programs: netplan, networkd, sysctl, systemd, udev."""

import fnmatch
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from netkit.design.fabric import Fabric, Host
from netkit.design.hosts import MAIN_TABLE, OIF_RULE_PRIORITY, RULE_PRIORITY, RoutePlan
from netkit.platforms.linux.view import views as host_views
from netkit.render import Engine
from tests.conftest import Golden
from tests.intents import fabric, values
from tests.namespace import needs_networkd, needs_root, networkd, rails_up, run
from tests.test_host_routes import VARIANTS

NETPLAN = Path("/usr/libexec/netplan/generate")
needs_netplan = pytest.mark.skipif(not NETPLAN.exists(), reason="netplan.io is not installed")
ENGINE = Engine()

Section = tuple[str, tuple[tuple[str, str], ...]]


def render(built: Fabric, host: Host) -> dict[str, str]:
    return {a.file: ENGINE.render(a.template, a.context, host.name) for a in host_views(built)(host)}


def sections(text: str) -> Counter[Section]:
    """A networkd unit as its sections; their order, and that of the keys in them, has no meaning."""
    found: Counter[Section] = Counter()
    for block in re.split(r"^(?=\[)", text, flags=re.MULTILINE)[1:]:
        name, *lines = (line for line in block.splitlines() if line and not line.startswith("#"))
        found[(name, tuple(sorted((line.split("=", 1)[0], line.split("=", 1)[1]) for line in lines)))] += 1
    return found


def section(name: str, **keys: str) -> Section:
    return name, tuple(sorted(keys.items()))


def planned(built: Fabric, host: Host, rail: int) -> Counter[Section]:
    """The expected units of a rail, from the route plan alone."""
    nic = next(nic for nic in host.nics if nic.rail == rail)
    mac = {"PermanentMACAddress": nic.mac} if nic.mac else {}
    source = section("[RoutingPolicyRule]", From=f"{nic.address}/32", Table=str(nic.table), Priority=str(RULE_PRIORITY))
    found = Counter(
        [
            section("[Match]", Name=nic.interface, **mac),
            section("[Link]", MTUBytes=str(host.mtu_bytes), RequiredForOnline="no"),
            section(
                "[Network]", Address=f"{nic.address}/{nic.prefix_length}", LinkLocalAddressing="no", IPv6AcceptRA="no"
            ),
            source,
            oif_rule(nic.interface, nic.table),
        ]
    )
    for route in RoutePlan(built).routes(nic):
        way = {"via": {"Gateway": route.via}, "link": {"Scope": "link"}, "unreachable": {"Type": "unreachable"}}[
            route.kind
        ]
        table = {} if route.table == MAIN_TABLE else {"Table": str(route.table)}
        found[section("[Route]", Destination=route.prefix, **way, **table)] += 1
    return found


def oif_rule(interface: str, table: int) -> Section:
    priority = str(OIF_RULE_PRIORITY)
    return section(
        "[RoutingPolicyRule]", OutgoingInterface=interface, Family="ipv4", Table=str(table), Priority=priority
    )


def install(files: dict[str, str], root: Path) -> list[tuple[str, str]]:
    """Put every file at its place in install.txt, below a folder, and return files with their places."""
    places = []
    for mode, name, target in (
        line.split() for line in files["install.txt"].splitlines() if line and not line.startswith("#")
    ):
        path = root / target.removeprefix("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[name], encoding="utf-8")
        path.chmod(int(mode, 8))
        places.append((name, target))
    return places


def generate(root: Path) -> Path:
    """Run netplan's generator below a folder and return the folder of its units."""
    done = subprocess.run([NETPLAN, "--root-dir", root], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    return root / "run" / "systemd" / "network"


IPV6: dict[str, Any] = {"pools": {"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"}}
MACS = {"overrides": {"gpu01": {"macs": {0: "a0:88:c2:00:00:10", 1: "a0:88:c2:00:00:11"}}}}
BACKENDS: dict[str, dict[str, Any]] = {
    "netplan": {},
    "networkd": {"hosts": {"backend": "networkd"}, "attachment": "vlan", "cross_rail": "blocked"},
    "ipv6": IPV6,
}


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_file_equals_its_golden_file(backend: str, golden: Golden) -> None:
    built = fabric(values(BACKENDS[backend]))
    for name, text in render(built, built.hosts[0]).items():
        golden(f"hosts-{backend}/{name}", text)


@needs_netplan
@pytest.mark.parametrize("changes", [*VARIANTS, pytest.param(MACS, id="macs")])
def test_netplan_and_the_drop_ins_give_exactly_the_route_plan(changes: dict[str, Any], tmp_path: Path) -> None:
    built = fabric(values(changes))
    host = built.hosts[0]
    install(render(built, host), tmp_path)
    units = generate(tmp_path)
    assert sorted(path.name for path in units.glob("*.network")) == [
        f"10-netplan-{nic.interface}.network" for nic in host.nics
    ]
    for nic in host.nics:
        unit = units / f"10-netplan-{nic.interface}.network"
        drop_in = tmp_path / "etc" / "systemd" / "network" / f"{unit.name}.d" / "oif.conf"
        own_rule = Counter([oif_rule(nic.interface, nic.table)])
        assert sections(unit.read_text()) + own_rule == planned(built, host, nic.rail)
        assert sections(drop_in.read_text()) == Counter(oif_rule(rail.interface, rail.table) for rail in host.nics)


@pytest.mark.parametrize("changes", [*VARIANTS, pytest.param(MACS, id="macs")])
def test_networkd_alone_gives_exactly_the_route_plan(changes: dict[str, Any]) -> None:
    built = fabric(values({**changes, "hosts": {"backend": "networkd"}}))
    host = built.hosts[0]
    files = render(built, host)
    for nic in host.nics:
        assert sections(files[f"10-{nic.interface}.network"]) == planned(built, host, nic.rail)
        assert sections(files[f"10-{nic.interface}.link"]) == Counter(
            [
                section("[Match]", Path=f"pci-{nic.pci}", Property=f"NETKIT_RAIL={nic.interface}"),
                section("[Link]", Name=nic.interface, MTUBytes="9000"),
            ]
        )


@needs_root
@needs_networkd
@needs_netplan
@pytest.mark.parametrize("backend", ["netplan", "networkd"])
@pytest.mark.parametrize("changes", [VARIANTS[0], VARIANTS[-1]])
def test_a_real_networkd_installs_the_route_plan_in_the_kernel(
    changes: dict[str, Any], backend: str, tmp_path: Path
) -> None:
    built = fabric(values({**changes, "hosts": {"backend": backend}}))
    host = built.hosts[0]
    install(render(built, host), tmp_path)
    folder = tmp_path / "etc" / "systemd" / "network"
    for unit in generate(tmp_path).glob("*.network") if backend == "netplan" else ():
        shutil.copy(unit, folder)
    routes = {(nic.interface, route) for nic in host.nics for route in RoutePlan(built).routes(nic)}
    start = networkd(folder, 2 * len(host.nics), len(routes))
    kernel = run(tmp_path, [*rails_up(nic.interface for nic in host.nics), *start])
    held = {
        (route.get("dev"), route["dst"], route.get("gateway", ""), route.get("type", ""), route.get("table", "main"))
        for route in kernel.routes
        if route.get("protocol") == "static"
    }
    assert held == {
        (
            None if route.kind == "unreachable" else interface,
            route.prefix,
            route.via,
            "unreachable" if route.kind == "unreachable" else "",
            "main" if route.table == MAIN_TABLE else str(route.table),
        )
        for interface, route in routes
    }, kernel.output
    rules = {
        (rule["priority"], rule["src"], rule.get("oif"), rule["table"]) for rule in kernel.rules if rule.get("protocol")
    }
    wanted = {(RULE_PRIORITY, nic.address, None, str(nic.table)) for nic in host.nics}
    assert rules == wanted | {(OIF_RULE_PRIORITY, "all", nic.interface, str(nic.table)) for nic in host.nics}
    shown = {link["ifname"]: link for link in kernel.links}
    for nic in host.nics:
        assert shown[nic.interface]["mtu"] == host.mtu_bytes
        assert [(a["local"], a["prefixlen"]) for a in shown[nic.interface]["addr_info"]] == [
            (nic.address, nic.prefix_length)
        ]


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_install_list_names_every_file_and_no_path_twice(backend: str, tmp_path: Path) -> None:
    built = fabric(values(BACKENDS[backend]))
    files = render(built, built.hosts[0])
    places = install(files, tmp_path)
    assert sorted({name for name, _ in places}) == sorted(set(files) - {"install.txt"})
    assert len({target for _, target in places}) == len(places)


Device = dict[str, str]


def udev(rules: str, device: Device) -> dict[str, str]:
    """The effect of rules on a device, for the keys of udev's language that netkit renders, and no others."""
    result: dict[str, str] = {}
    lines = [line for line in rules.splitlines() if line and not line.startswith("#")]
    goto = ""
    for line in lines:
        tokens = re.findall(r'([A-Z]+(?:\{\w+\})?)(==|!=|\+=|=)"([^"]*)"(?:, |$)', line)
        assert ", ".join(f'{key}{operator}"{value}"' for key, operator, value in tokens) == line
        if goto and ("LABEL", "=", goto) not in tokens:
            continue
        goto = ""
        if all(matches(device | result, key, operator, value) for key, operator, value in tokens):
            for key, operator, value in tokens:
                if key == "GOTO":
                    goto = value
                elif operator in {"=", "+="} and key != "LABEL":
                    filled = value.replace("$env{NETKIT_RAIL}", result.get("ENV{NETKIT_RAIL}", "")).replace(
                        "%k", device["KERNEL"]
                    )
                    result[key] = f"{result[key]} {filled}" if operator == "+=" and key in result else filled
    assert not goto
    return result


def matches(device: Device, key: str, operator: str, value: str) -> bool:
    if operator not in {"==", "!="}:
        return True
    if key.startswith("ATTR") and key not in device:
        return False  # an unreadable file matches nothing
    there = device.get(key, "").split() if key == "KERNELS" else [device.get(key, "")]
    return any(fnmatch.fnmatchcase(text, glob) for text in there for glob in value.split("|")) == (operator == "==")


def net(kernel: str, pci: str, **more: str) -> Device:
    path = f"/devices/pci0000:15/{pci}/net/{kernel}"
    return {
        "ACTION": "add",
        "SUBSYSTEM": "net",
        "KERNEL": kernel,
        "KERNELS": f"0000:15:01.0 {pci}",
        "DEVPATH": path,
        **more,
    }


RAIL0 = {
    "ENV{NETKIT_RAIL}": "rail0",
    "NAME": "rail0",
    "TAG": "systemd",
    "ENV{SYSTEMD_WANTS}": "netkit-nic-qos@rail0.service",
}
RESTART = "/usr/bin/systemctl --no-block try-restart netkit-nic-qos@rail0.service"
SF_PATH = {"DEVPATH": "/devices/pci0000:15/0000:18:00.0/mlx5_core.sf.4/net/eth9"}


@pytest.mark.parametrize(
    ("device", "outcome"),
    [
        pytest.param(net("eth4", "0000:18:00.0"), RAIL0, id="rail"),
        pytest.param(net("eth4", "0000:18:00.0", **{"ATTR{phys_port_name}": "p0"}), RAIL0, id="rail-in-switchdev-mode"),
        pytest.param(net("eth4", "0000:18:00.0", **{"ATTR{phys_port_name}": "pf0vf3"}), {}, id="representor"),
        pytest.param(
            net("eth4", "0000:18:00.0", **{"ATTR{phys_port_name}": "c1pf0vf3"}), {}, id="representor-of-another-host"
        ),
        pytest.param(net("eth9", "0000:18:00.0", **SF_PATH), {}, id="sub-function"),
        pytest.param(net("eth5", "0000:18:00.1"), {}, id="virtual-function"),
        pytest.param(net("eth6", "0000:29:00.0"), {}, id="storage"),
        pytest.param(net("rail0", "0000:18:00.0", ACTION="remove"), {}, id="removal"),
        pytest.param(
            net("mlx5_0", "0000:18:00.0", SUBSYSTEM="infiniband"),
            {"ENV{NETKIT_RAIL}": "rail0", "RUN": RESTART},
            id="rdma",
        ),
        pytest.param(net("mlx5_1", "0000:29:00.0", SUBSYSTEM="infiniband"), {}, id="other-rdma"),
    ],
)
def test_udev_names_the_rails_and_nothing_else(device: Device, outcome: dict[str, str]) -> None:
    built = fabric(values())
    assert udev(render(built, built.hosts[0])["70-netkit-rails.rules"], device) == outcome


def test_rdma_devices_are_renamed_only_where_the_host_model_lacks_their_names() -> None:
    given = {"hosts": {"model": "hgx-h100-generic", "pci": ["0000:1a:00.0", "0000:3c:00.0"]}}
    built = fabric(values(given))
    files = render(built, built.hosts[0])
    device = net("mlx5_7", "0000:3c:00.0", SUBSYSTEM="infiniband")
    assert udev(files["70-netkit-rails.rules"], device) == {
        "ENV{NETKIT_RAIL}": "rail1",
        "RUN": "/usr/bin/rdma dev set mlx5_7 name rdma_rail1 " + RESTART.replace("rail0", "rail1"),
    }
    assert "NCCL_IB_HCA==rdma_rail0,rdma_rail1" in files["nccl.conf"].splitlines()


@needs_root
def test_the_kernel_accepts_every_sysctl_and_stricter_settings_do_not_win(tmp_path: Path) -> None:
    built = fabric(values())
    install(render(built, built.hosts[0]), tmp_path)
    rails = [nic.interface for nic in built.hosts[0].nics]
    before = [f"sysctl -qw net.ipv4.conf.{name}.rp_filter=1" for name in ("all", "rail0")]
    shown = [
        f"sysctl -n net.ipv4.conf.{name}.{key}"
        for key in ("rp_filter", "arp_ignore", "arp_announce")
        for name in ("all", *rails)
    ]
    applied = f"sysctl -qp {tmp_path}/etc/sysctl.d/90-netkit-rails.conf"
    kernel = run(tmp_path, [*rails_up(rails), *before, applied, *shown])
    assert kernel.output.split() == ["2"] * 3 + ["1"] * 3 + ["2"] * 3


@needs_root
def test_a_gateway_that_comes_back_over_ipv6_is_used_again_although_the_rest_is_unreachable(tmp_path: Path) -> None:
    """The kernel prefers the unreachable route, and would ask a failed gateway again only after a minute."""
    built = fabric(values(IPV6))
    host, other = built.hosts[:2]
    install(render(built, host), tmp_path)
    nic, far = host.nics[0], other.nics[0].address_v6
    ways = {"via": f"via {nic.gateway_v6} dev rail0", "link": "dev rail0", "unreachable": "dev lo"}
    routes = [
        f"ip -6 route add {'unreachable ' if route.kind == 'unreachable' else ''}{route.prefix} {ways[route.kind]} "
        f"table {route.table}"
        for route in RoutePlan(built, 6).routes(nic)
    ]
    asked = f"ping -6 -c 1 -W 1 -I {nic.address_v6} {far} >/dev/null 2>&1"
    kernel = run(
        tmp_path,
        [
            *rails_up(one.interface for one in host.nics),
            "unshare --net sleep 50 & leaf=$!",
            'until [ "$(readlink /proc/$leaf/ns/net)" != "$(readlink /proc/$$/ns/net)" ]; do sleep 0.1; done',
            "ip link set far-rail0 netns $leaf",
            "ip link set rail0 up; nsenter -t $leaf -n ip link set far-rail0 up; nsenter -t $leaf -n ip link set lo up",
            f"ip -6 addr add {nic.address_v6}/{nic.prefix_length_v6} dev rail0 nodad",
            *routes,
            f"ip -6 rule add from {nic.address_v6} table {nic.table}",
            f"sysctl -qp {tmp_path}/etc/sysctl.d/90-netkit-rails.conf",
            f"until ip -6 neigh show {nic.gateway_v6} dev rail0 | grep -q FAILED; do {asked} || sleep 0.5; done",
            f"nsenter -t $leaf -n ip -6 addr add {nic.gateway_v6}/{nic.prefix_length_v6} dev far-rail0 nodad",
            f"nsenter -t $leaf -n ip -6 addr add {far}/128 dev lo nodad",
            f"for try in $(seq 20); do if {asked}; then echo answered; break; fi; sleep 0.5; done",
            "kill $leaf",
        ],
    )
    assert kernel.output == "answered\n"


def settings(text: str) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.splitlines() if line and not line.startswith("#"))


def test_firmware_and_nccl_follow_the_profile_and_the_fabric() -> None:
    lossless = {
        "roce": {"priority": 5, "dscp": [34], "weight": 70},
        "cnp": {"priority": 7, "dscp": 40},
        "best_effort": {"weight": 30},
    }
    built = fabric(values({"lossless": lossless, "cross_rail": "blocked", "adaptive_routing": True}))
    files = render(built, built.hosts[0])
    assert settings(files["mlxconfig.conf"]) == {
        "LINK_TYPE_P1": "2",
        "ROCE_CC_PRIO_MASK_P1": "32",
        "CNP_DSCP_P1": "40",
        "CNP_802P_PRIO_P1": "7",
        "ROCE_ADAPTIVE_ROUTING_EN": "1",
        "PCI_WR_ORDERING": "1",
    }
    assert settings(files["nccl.conf"]) == {
        "NCCL_IB_HCA": "=mlx5_0,mlx5_3",
        "NCCL_IB_TC": "138",
        "NCCL_SOCKET_IFNAME": "=eno1",
        "NCCL_CROSS_NIC": "0",
    }


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if not shutil.which("systemd-analyze"):
        pytest.skip("systemd is not installed")
    built = fabric(values())
    text = render(built, built.hosts[0])["netkit-nic-qos@.service"]
    assert text.count("/usr/local/sbin/netkit-nic-qos %I") == 1
    unit = tmp_path / "netkit-nic-qos@rail0.service"
    unit.write_text(text.replace("/usr/local/sbin/netkit-nic-qos", "/bin/true"), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_hosts_that_differ_only_in_addresses_share_the_route_prefixes() -> None:
    built = fabric(values())
    plan = RoutePlan(built)
    first, second = (host.nics[0] for host in built.hosts[:2])
    assert plan.own_rail(first) is plan.own_rail(second)
    assert plan.other_rails(first) is plan.other_rails(second)
