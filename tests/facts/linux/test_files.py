"""Files below /sys and /proc: NICs under other names, other drivers, virtual functions, and PCI topology."""

from collections.abc import Mapping

from netkit.facts import Absent
from netkit.facts.device import Interface, System
from netkit.facts.host import HostFacts
from netkit.facts.qos import Ecn
from netkit.platforms.linux.facts import hardware, interface, reading
from netkit.platforms.linux.facts.hardware import host, system
from netkit.platforms.view import SubjectNic
from tests.facts.linux.case import CASES, DEVICES
from tests.facts.linux.case import tree as made

NIC = SubjectNic("rail0", "0000:18:00.0", "mlx5_0")
CARD = f"{DEVICES}/{NIC.pci}"
PORT = f"{CARD}/infiniband/mlx5_0/ports/1"
OWN = {f"{CARD}/net/rail0/speed": "400000", f"{CARD}/infiniband/mlx5_0/fw_ver": "28.43.1014"}
ROOTED = "/sys/devices/pci0000:15/0000:15:01.0/0000:16:00.0"
TOPOLOGY = (
    f"{ROOTED}/0000:17:00.0/0000:18:00.0\n{ROOTED}/0000:17:02.0/0000:1b:00.0\n"
    "/sys/devices/pci0000:15/0000:15:02.0/0000:1c:00.0\n/sys/devices/pci0000:00/0000:00:1f.0\n"
    f"#@ gpus\n{DEVICES}/0000:1b:00.0/class\n{DEVICES}/0000:1c:00.0/class\n#= end\n"
)
VERSIONS = (
    "MLNX_OFED_LINUX-24.10-1.1.4.0:\n"
    "mlxlink, mft 4.34.1-10, built on Mar 11 2025, 10:13:46. Git SHA Hash: N/A\n"
    "/usr/lib/x86_64-linux-gnu/libnccl.so.2.21.5\n#= end\n"
)
LSPCI = next(case for case in CASES if case.parent.name == "lspci").read_text(encoding="utf-8")


def cards(files: Mapping[str, str], *nics: SubjectNic) -> tuple[reading.Card, ...]:
    return reading.cards(made(files), nics or (NIC,))


def test_a_truncated_tree_is_refused() -> None:
    whole = f"{CARD}/net/rail0/speed\x00400000\n/end\x00\n"
    assert reading.parse(whole).files == {f"{CARD}/net/rail0/speed": "400000"}
    assert reading.parse(whole[:-8]).files == {}


def test_a_nic_is_identified_by_its_pci_address_whatever_its_name() -> None:
    assert cards(OWN) == (reading.Card("rail0", NIC.pci, "mlx5_0", CARD),)
    renamed = {f"{CARD}/net/enp24s0np0/speed": "400000", f"{CARD}/infiniband/mlx5_9/fw_ver": "1"}
    assert cards(renamed) == (reading.Card("enp24s0np0", NIC.pci, "mlx5_9", CARD),)
    assert cards({f"{CARD}/uevent": "DRIVER=vfio-pci"}) == ()


def test_representors_are_not_the_port() -> None:
    names = {"eth4": "pf0vf3", "eth7": "p0", "eth9": "pf0sf1"}
    files = {f"{CARD}/net/{name}/phys_port_name": port for name, port in names.items()}
    assert [card.interface for card in cards(files)] == ["eth7"]


def test_a_link_that_is_down_has_no_speed() -> None:
    files = {**OWN, f"{CARD}/net/rail0/speed": "-1"}
    parsed = interface.links('[{"ifname": "rail0", "flags": ["BROADCAST", "UP"], "mtu": 9000, "address": "02:00"}, 7]')
    assert interface.interfaces(parsed, made(files), cards(files), {}) == {
        "rail0": Interface(is_up=False, is_enabled=True, mtu_bytes=9000, mac="02:00")
    }
    assert isinstance(interface.interfaces(None, made(files), cards(files), {}), Absent)
    assert isinstance(interface.interfaces(parsed, made({}), (), {}), Absent)


def test_link_local_addresses_are_left_out() -> None:
    shown = (
        '[{"ifname": "rail0", "addr_info": [{"local": "10.0.0.1", "prefixlen": 31, "scope": "global"},'
        '{"local": "fe80::1", "prefixlen": 64, "scope": "link"}, {"local": "10.0.0.9"}]}, {"ifname": "eno1"}]'
    )
    assert interface.addresses(interface.links(shown)) == {"rail0": ("10.0.0.1/31",), "eno1": ()}
    assert interface.addresses(None) == {}


def test_the_in_tree_driver_has_congestion_settings_in_debugfs_and_only_the_cnp_marking() -> None:
    debug = f"/sys/kernel/debug/mlx5/{NIC.pci}/cc_params"
    files = {**OWN, f"{debug}/np_cnp_dscp": "48", f"{debug}/np_cnp_prio": "6"}
    shown = "#@ rail0\nprio-pfc 3:on \nprio-tc 3:3 \n#= 0\n"
    found = hardware.qos(made(files), cards(files), shown, "")
    assert not isinstance(found, Absent)
    one = found["rail0"]
    assert (one.cnp_dscp, one.cnp_priority, one.ecn, one.ecn_notifies, one.data_tos) == (48, 6, None, None, None)
    assert one.is_global_pause is None


def test_ecn_works_where_a_nic_both_notifies_and_reacts() -> None:
    ecn = {f"{CARD}/net/rail0/ecn/roce_{side}/enable/{priority}": "0" for side in ("np", "rp") for priority in range(8)}
    ecn[f"{CARD}/net/rail0/ecn/roce_np/enable/3"] = "1"
    shown = "#@ rail0\nprio-pfc 3:on \nprio-tc 3:5 \n#= 0\n"
    pause = "#@ rail0\nPause parameters for rail0:\nAutonegotiate:\toff\nRX:\t\ton\nTX:\t\toff\n#= 0\n"
    half = hardware.qos(made({**OWN, **ecn}), cards({**OWN, **ecn}), shown, pause)
    ecn[f"{CARD}/net/rail0/ecn/roce_rp/enable/3"] = "1"
    whole = hardware.qos(made({**OWN, **ecn}), cards({**OWN, **ecn}), shown, pause)
    assert not isinstance(half, Absent)
    assert not isinstance(whole, Absent)
    assert (half["rail0"].ecn, half["rail0"].ecn_notifies, half["rail0"].ecn_reacts) == (
        {},
        frozenset({3}),
        frozenset(),
    )
    assert (whole["rail0"].ecn, whole["rail0"].is_global_pause) == ({5: Ecn(is_on=True)}, True)


def test_a_virtual_function_has_kernel_counters_and_a_silent_driver_none() -> None:
    kernel = {f"{CARD}/net/rail0/statistics/{name}": "8" for name in ("rx_bytes", "rx_dropped", "rx_errors")}
    files = {**OWN, **kernel, f"{PORT}/hw_counters/np_cnp_sent": "5", f"{CARD}/net/rail0/carrier_changes": "3"}
    always = {"cnp_sent": {"rail0": 5}, "rx_errors": {"rail0": 8}, "carrier_changes": {"rail0": 3}}
    virtual = "#@ rail0\n     rx_vport_rdma_unicast_bytes: 6\n#= 0\n"
    found = interface.counters(made(files), cards(files), virtual, "")
    assert found == {**always, "rdma_rx_bytes": {"rail0": 6}, "rx_bytes": {"rail0": 8}, "rx_drops": {"rail0": 8}}
    assert interface.counters(made(files), cards(files), "", "") == always
    assert isinstance(interface.counters(made({}), (), "", ""), Absent)


def test_fec_is_counted_once_for_all_lanes() -> None:
    shown = (
        "#@ rail0\nStatistics:\n  corrected_blocks: 9\n    Lane 0: 4\n    Lane 1: 5\n  uncorrectable_blocks: 1\n#= 0\n"
    )
    found = interface.counters(made(OWN), cards(OWN), "", shown)
    assert found == {"fec_corrected": {"rail0": 9}, "fec_uncorrectable": {"rail0": 1}}


def test_the_roce_v2_gid_index_is_looked_up() -> None:
    gids = {
        0: ("fe80:0000:0000:0000:0000:00ff:fe00:0001", "IB/RoCE v1"),
        1: ("fe80:0000:0000:0000:0000:00ff:fe00:0001", "RoCE v2"),
        4: ("0000:0000:0000:0000:0000:ffff:0a80:0001", "IB/RoCE v1"),
        5: ("0000:0000:0000:0000:0000:ffff:0a80:0001", "RoCE v2"),
        6: ("not a gid", "RoCE v2"),
    }
    files = dict(OWN)
    for index, (gid, kind) in gids.items():
        files |= {f"{PORT}/gids/{index}": gid, f"{PORT}/gid_attrs/types/{index}": kind}
    found = hardware.nics(made(files), cards(files), {}, {"mlx5_0": 1024}, {})
    assert not isinstance(found, Absent)
    assert (found["rail0"].roce_gid_index, found["rail0"].active_mtu_bytes) == (5, 1024)
    assert (found["rail0"].pci_gt_s, found["rail0"].pci_width, found["rail0"].numa) == (None, None, None)
    assert isinstance(hardware.nics(made({}), (), {}, {}, {}), Absent)


def test_the_nearest_nic_of_a_gpu_is_behind_the_same_switch() -> None:
    found = hardware.topology(TOPOLOGY)
    assert found.gpus == ("0000:1b:00.0", "0000:1c:00.0")
    assert hardware.nearest(found, cards(OWN)) == {"0000:1b:00.0": "rail0"}, "the other one shares a root complex only"
    assert hardware.topology(TOPOLOGY.removesuffix("#= end\n")) == hardware.Topology({}, ())


def test_only_bridges_above_nics_and_gpus_matter_and_without_lspci_they_are_unknown() -> None:
    devices, topology = hardware.devices(LSPCI), hardware.topology(TOPOLOGY)
    concerned = (*topology.gpus, NIC.pci)
    assert hardware.bridges_with_access_control(devices, topology, concerned) == ("0000:17:00.0",)
    elsewhere = hardware.topology(TOPOLOGY.replace("0000:17:00.0", "0000:17:04.0"))
    assert hardware.bridges_with_access_control(devices, elsewhere, concerned) == ()
    assert hardware.bridges_with_access_control(devices, hardware.Topology({}, ()), concerned) == ("0000:17:00.0",)
    assert hardware.bridges_with_access_control({}, topology, concerned) is None
    assert hardware.devices(LSPCI.removesuffix("#= end\n")) == {}


def test_a_host_reports_its_settings_and_installed_packages() -> None:
    files = {
        **OWN,
        "/proc/sys/net/ipv4/conf/all/rp_filter": "2",
        "/proc/sys/net/ipv4/conf/enp24s0.100/arp_ignore": "1",
        "/proc/sys/net/ipv6/conf/enp24s0.100/router_probe_interval": "60",
        f"{CARD}/iommu_group/type": "DMA-FQ",
        "/sys/module/nvidia_peermem/initstate": "live",
        "/etc/nccl.conf": "# for all jobs\nNCCL_IB_TC=106\nNCCL_IB_HCA='=mlx5_0'\nnonsense",
    }
    assert host(made(files), cards(files), {}, (), {}, hardware.Topology({}, ()), VERSIONS) == HostFacts(
        default_routes=(),
        sysctls={
            "net.ipv4.conf.all.rp_filter": "2",
            "net.ipv4.conf.enp24s0.100.arp_ignore": "1",
            "net.ipv6.conf.enp24s0.100.router_probe_interval": "60",
        },
        is_iommu_on=True,
        tools={"nvidia_peermem": "loaded", "ofed": "24.10-1.1.4.0", "mft": "4.34.1-10", "libnccl": "2.21.5"},
        nccl={"NCCL_IB_TC": "106", "NCCL_IB_HCA": "=mlx5_0"},
    )
    passed = {**files, f"{CARD}/iommu_group/type": "identity"}
    found = host(made(passed), cards(passed), {}, None, {}, hardware.Topology({}, ()), "sh: no such thing\n#= end\n")
    assert not isinstance(found, Absent)
    assert (found.is_iommu_on, found.tools) == (False, {"nvidia_peermem": "loaded"})
    cut = host(made(files), cards(files), {}, None, {}, hardware.Topology({}, ()), VERSIONS.splitlines()[0])
    assert not isinstance(cut, Absent)
    assert cut.tools == {"nvidia_peermem": "loaded", "ofed": "24.10-1.1.4.0", "mft": "", "libnccl": ""}


def test_a_host_is_identified_by_its_files() -> None:
    files = {
        "/proc/sys/kernel/hostname": "gpu01",
        "/proc/sys/kernel/osrelease": "6.8.0-1012-nvidia",
        "/proc/sys/kernel/random/boot_id": "b1",
        "/proc/uptime": "86400.25 600000.00",
        "/etc/os-release": 'NAME="Ubuntu"\nVERSION_ID="24.04"\nID=ubuntu',
        "/sys/class/dmi/id/product_name": "DGXH100",
        "/sys/class/dmi/id/product_serial": "1660224000123",
    }
    whole = System("gpu01", "24.04", "DGXH100", "1660224000123", 86400.25, "b1", "6.8.0-1012-nvidia")
    assert system(made(files)) == whole
    assert system(made({"/proc/sys/kernel/hostname": "gpu01"})) == System("gpu01")
    assert isinstance(system(made({})), Absent)
