from dataclasses import replace

import pytest

from netkit.facts import Facts
from netkit.facts.device import System
from netkit.facts.host import HostFacts, NicFacts
from netkit.judge import CheckContext
from tests import intents
from tests.checks.judging import said, skipped
from tests.judge.scenes import fabric, observation, scene

BUILT = fabric()
GPU = BUILT.hosts[0]
SYSCTLS = {
    "net.ipv4.conf.all.rp_filter": "2",
    "net.ipv4.conf.all.arp_ignore": "1",
    "net.ipv4.conf.all.arp_announce": "2",
    **{f"net.ipv4.conf.{nic.interface}.rp_filter": "0" for nic in GPU.nics},
}
CARD = NicFacts(
    "rail0",
    "0000:18:00.0",
    part="CX7",
    firmware="1",
    driver_version="5",
    pci_gt_s=32.0,
    pci_width=16,
    pci_full_gt_s=32.0,
    pci_full_width=16,
    read_request_bytes=4096,
    has_relaxed_ordering=True,
    active_mtu_bytes=4096,
    roce_gid_index=3,
    settings={"PCI_WR_ORDERING": "1"},
    next_settings={"PCI_WR_ORDERING": "1"},
)
HOST = HostFacts(
    sysctls=SYSCTLS, bridges_with_acs=(), nearest_nic={"a": "rail0", "b": "rail1"}, tools={"ofed": "24"}, nccl={}
)


def gpu(host: HostFacts = HOST, card: NicFacts = CARD) -> CheckContext:
    """Facts of one host with this first NIC."""
    cards = {"rail0": card, "rail1": replace(CARD, interface="rail1")}
    return scene(BUILT, observation("gpu01", Facts(host=host, nics=cards)))


def test_a_healthy_host_passes() -> None:
    assert said(gpu(), "host") == []


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("all.rp_filter", "1", ""),
        ("rail0.rp_filter", "1", ""),
        ("all.arp_ignore", "0", "arp_ignore is 0 in effect, not 1 or more"),
        ("all.arp_announce", "1", "arp_announce is 1 in effect, not 2"),
    ],
)
def test_the_higher_of_two_sysctls_applies(key: str, value: str, text: str) -> None:
    strict = {**SYSCTLS, f"net.ipv4.conf.{key}": value}
    found = {reported for *_, reported in said(gpu(replace(HOST, sysctls=strict)), "host.sysctls")}
    assert found == ({text} if text else set()) or key == "all.rp_filter"


def test_a_host_with_ipv6_soon_probes_its_gateways_again() -> None:
    built = fabric(pools={"loopbacks_v6": "2001:db8:255::/64", "hosts_v6": "2001:db8:128::/48"})
    probed = {"net.ipv6.conf.rail0.router_probe_interval": "1", "net.ipv6.conf.rail1.router_probe_interval": "60"}
    for sysctls, expected in (
        ({**SYSCTLS, **probed}, {("rail1", "router_probe_interval is 60 s, not 1 s")}),
        (SYSCTLS, set()),
    ):
        context = scene(built, observation("gpu01", Facts(host=replace(HOST, sysctls=sysctls))))
        assert {(where, text) for *_, where, text in said(context, "host.sysctls")} == expected
    assert {text for *_, text in skipped(context, "host.sysctls")} == {"router_probe_interval was not read"}


def test_strict_reverse_path_filtering_is_reported() -> None:
    strict = {**SYSCTLS, "net.ipv4.conf.all.rp_filter": "1"}
    assert {text for *_, text in said(gpu(replace(HOST, sysctls=strict)), "host.sysctls")} == {
        "rp_filter is 1 in effect, not 0 or 2"
    }


@pytest.mark.parametrize(
    ("card", "text"),
    [
        (replace(CARD, is_adaptive_routing_forced=True), None),
        (replace(CARD, is_adaptive_routing_forced=False), "adaptive routing is not forced (ROCE_ACCL)"),
        (replace(CARD, is_adaptive_routing_forced=None), "whether adaptive routing is forced (ROCE_ACCL) was not read"),
    ],
)
def test_a_nic_requests_adaptive_routing_where_its_leaf_supports_it(card: NicFacts, text: str | None) -> None:
    designed = intents.fabric(intents.values({"adaptive_routing": True}))
    seen = scene(designed, observation("gpu01", Facts(nics={"rail0": card})))
    reported = [text for *_, text in (*said(seen, "host.adaptive-routing"), *skipped(seen, "host.adaptive-routing"))]
    assert [line[: len(text or "")] for line in reported] == ([text] if text else [])
    still = scene(BUILT, observation("gpu01", Facts(nics={"rail0": card})))
    assert [*said(still, "host.adaptive-routing"), *skipped(still, "host.adaptive-routing")] == []


@pytest.mark.parametrize(
    ("card", "name", "text"),
    [
        (
            replace(CARD, pci_width=8),
            "host.pcie",
            "its PCIe link runs at 32 GT/s × 8, it could run at 32 GT/s × 16",
        ),
        (replace(CARD, read_request_bytes=512), "host.pcie", "asks for 512 bytes of PCIe at a time, not for 4096"),
        (replace(CARD, has_relaxed_ordering=False), "host.pcie", "relaxed ordering is off"),
        (replace(CARD, active_mtu_bytes=1024), "host.rdma", "RDMA packets carry 1024 bytes, not 4096"),
        (
            replace(CARD, next_settings={"PCI_WR_ORDERING": "0"}),
            "host.firmware-settings",
            "settings wait for a reset: PCI_WR_ORDERING 1 → 0",
        ),
    ],
)
def test_a_nic_that_differs_is_reported(card: NicFacts, name: str, text: str) -> None:
    assert [(place, reported) for _, _, place, reported in said(gpu(card=card), name)] == [("rail0", text)]


@pytest.mark.parametrize(
    ("settings", "texts"),
    [
        ({"CNP_DSCP_P1": "48", "CNP_802P_PRIO_P1": "6", "ROCE_CC_PRIO_MASK_P1": "255"}, []),
        ({"CNP_DSCP_P1": "N/A"}, []),
        ({"CNP_DSCP_P1": "4"}, ["from its next reset on CNP_DSCP_P1 is 4, not 48"]),
        (
            {"ROCE_CC_PRIO_MASK_P1": "16"},
            ["from its next reset on ROCE_CC_PRIO_MASK_P1 is 16: no congestion control on priority 3"],
        ),
    ],
)
def test_a_firmware_fallback_is_reported(settings: dict[str, str], texts: list[str]) -> None:
    found = said(gpu(card=replace(CARD, settings=settings, next_settings=settings)), "host.firmware-settings")
    assert [text for _, _, place, text in found if place == "rail0"] == texts


def test_acs_and_pci_distance_are_reported() -> None:
    redirecting = replace(HOST, bridges_with_acs=("0000:17:01.0",))
    assert said(gpu(redirecting), "host.acs") == [("fail", "gpu01", "", "ACS redirects on 1 PCI bridges: 0000:17:01.0")]
    assert skipped(gpu(replace(HOST, bridges_with_acs=None)), "host.acs") == [
        ("gpu01", "", "what its PCI bridges redirect could not be seen; lspci needs root")
    ]
    far = replace(HOST, nearest_nic={"a": "rail0", "b": "rail0"})
    assert [place for _, _, place, _ in said(gpu(far), "host.affinity")] == ["rail0", "rail1"]


@pytest.mark.parametrize(
    ("nearest", "places"),
    [
        ({"a": "rail0", "b": "rail0", "c": "rail1", "d": "rail1"}, []),
        ({"a": "rail0", "b": "rail0", "c": "rail0", "d": "rail1"}, ["rail0", "rail1"]),
        ({"a": "rail0"}, ["rail1"]),
    ],
    ids=["two GPUs share each NIC", "one of three strays", "a NIC in the wrong slot"],
)
def test_every_nic_serves_as_many_gpus_as_the_others(nearest: dict[str, str], places: list[str]) -> None:
    found = said(gpu(replace(HOST, nearest_nic=nearest)), "host.affinity")
    assert [place for _, _, place, _ in found] == places


@pytest.mark.parametrize(("mtu_bytes", "rdma_bytes"), [(9216, 4096), (4200, 4096), (4150, 2048), (1500, 1024)])
def test_the_rdma_mtu_leaves_room_for_headers(mtu_bytes: int, rdma_bytes: int) -> None:
    built = replace(BUILT, hosts=tuple(replace(host, mtu_bytes=mtu_bytes) for host in BUILT.hosts))
    cards = {name: replace(CARD, interface=name, active_mtu_bytes=rdma_bytes) for name in ("rail0", "rail1")}
    assert said(scene(built, observation("gpu01", Facts(nics=cards))), "host.rdma") == []


def counting(**counts: int) -> CheckContext:
    """Facts of one host whose first NIC has these deltas within the window, and no other counters."""
    reported = dict.fromkeys(("retries_exceeded", "local_ack_timeout", "packet_seq_err", "out_of_sequence"), 0)
    rows = {name: {"rail0": (9, 9 + count), "rail1": (0, 0)} for name, count in {**reported, **counts}.items()}
    return scene(BUILT, observation("gpu01", None, **rows))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({}, []),
        ({"packet_seq_err": 10}, []),
        (
            {"packet_seq_err": 70, "local_ack_timeout": 2},
            [("warn", "RDMA loses packets: 2 answers that never came, 70 asked for again")],
        ),
        ({"retries_exceeded": 3}, [("fail", "queue pairs gave up 3 times: jobs over this NIC broke off")]),
    ],
)
def test_rdma_retransmissions_are_reported(counts: dict[str, int], expected: list[tuple[str, str]]) -> None:
    found = said(counting(**counts), "host.repeats")
    assert [(verdict, text) for verdict, _, _, text in found] == expected


def test_out_of_order_packets_pass_with_adaptive_routing() -> None:
    switches = tuple(replace(one, adaptive_routing=True) for one in BUILT.switches)
    busy = replace(counting(out_of_sequence=9_000, packet_seq_err=9_000), fabric=replace(BUILT, switches=switches))
    assert said(busy, "host.repeats") == []
    waited = replace(counting(local_ack_timeout=90), fabric=replace(BUILT, switches=switches))
    assert [text for *_, text in said(waited, "host.repeats")] == ["RDMA loses packets: 90 answers that never came"]


def test_retransmissions_pass_below_a_switch_without_a_lossless_class() -> None:
    switches = tuple(replace(one, platform="frr") for one in BUILT.switches)
    lossy = replace(counting(packet_seq_err=9_000), fabric=replace(BUILT, switches=switches))
    assert said(lossy, "host.repeats") == []
    reason = "a switch without a lossless class loses packets whenever it is full"
    assert ("gpu01", "rail0", reason) in skipped(lossy, "host.repeats")
    given_up = replace(counting(retries_exceeded=2), fabric=replace(BUILT, switches=switches))
    assert [verdict for verdict, *_ in said(given_up, "host.repeats")] == ["fail"]


def test_a_nic_that_counts_no_retransmissions_is_not_judged() -> None:
    found = scene(BUILT, observation("gpu01", None, rx_bytes={"rail0": (0, 9)}))
    assert ("gpu01", "rail0", "the NIC does not report what RDMA retransmits") in skipped(found, "host.repeats")


@pytest.mark.parametrize(
    ("nccl", "expected"),
    [
        ({"NCCL_IB_TC": "106", "NCCL_IB_GID_INDEX": "3"}, []),
        ({}, []),
        ({"NCCL_IB_TC": "0"}, [("", "NCCL_IB_TC is 0, not 106: packets leave with DSCP 0")]),
        ({"NCCL_IB_TC": "106", "NCCL_GIN_IB_TC": "x"}, [("", "NCCL_GIN_IB_TC is x, not 106")]),
        (
            {"NCCL_IB_TC": "106", "NCCL_IB_GID_INDEX": "1"},
            [
                (nic, "NCCL_IB_GID_INDEX is 1, the RoCEv2 index of its address is 3")
                for nic in ("rail0", "rail1")
            ],
        ),
    ],
)  # fmt: skip
def test_settings_of_the_nccl_file_fit_the_fabric(nccl: dict[str, str], expected: list[tuple[str, str]]) -> None:
    found = gpu(replace(HOST, nccl=nccl))
    assert [(place, text) for _, _, place, text in said(found, "host.nccl")] == expected
    untold = ("gpu01", "", "no /etc/nccl.conf sets NCCL_IB_TC: each job has to")
    assert (untold in skipped(found, "host.nccl")) == (not nccl)


def test_hosts_and_nics_are_alike() -> None:
    built = fabric(units=[{"unit": 1, "hosts": 3}])
    hosts = []
    for name, firmware, kernel in (("gpu01", "1", "6.1"), ("gpu02", "1", "6.1"), ("gpu03", "2", "6.2")):
        cards = {"rail0": replace(CARD, firmware=firmware)}
        hosts.append(observation(name, Facts(host=HOST, nics=cards, system=System(name, kernel=kernel))))
    found = scene(built, *hosts)
    assert said(found, "inventory.nics") == [("warn", "gpu03", "rail0", "firmware 2, most of its kind have 1")]
    assert said(found, "host.uniform") == [("warn", "gpu03", "", "kernel is 6.2, on most hosts 6.1")]


def test_tools_are_compared_among_hosts_with_one_driver_and_nic_names_within_a_model() -> None:
    built = fabric(units=[{"unit": 1, "hosts": 4}])
    rows = {
        "gpu01": ("mlx5_core", {"mlx5_core": "24.10", "mft": "4.34"}, "106"),
        "gpu02": ("mlx5_core", {"mlx5_core": "24.10", "mft": ""}, "106"),
        "gpu03": ("mlx5_core", {"mlx5_core": "23.1", "mft": "4.34"}, "106"),
        "gpu04": ("bnxt_en", {"bnxt_en": "1.10"}, "105"),
    }
    seen = []
    for name, (driver, tools, tc) in rows.items():
        nccl = {"NCCL_IB_TC": tc, "NCCL_IB_HCA": f"={driver}"}
        nics = {"rail0": replace(CARD, driver=driver)}
        seen.append(observation(name, Facts(host=replace(HOST, tools=tools, nccl=nccl), nics=nics)))
    assert said(scene(built, *seen), "host.uniform") == [  # what gpu02 has of mft was not read
        ("warn", "gpu03", "", "mlx5_core is 23.1, on most hosts 24.10"),
        ("warn", "gpu04", "", "NCCL_IB_HCA is =bnxt_en, on most hosts =mlx5_core"),
        ("warn", "gpu04", "", "NCCL_IB_TC is 105, on most hosts 106"),
    ]
    other = replace(built.hosts[3], model=replace(built.hosts[3].model, name="mi300x-thor2"))
    mixed = replace(built, hosts=(*built.hosts[:3], other))
    assert said(scene(mixed, *seen), "host.uniform") == [
        ("warn", "gpu03", "", "mlx5_core is 23.1, on most hosts 24.10"),
        ("warn", "gpu04", "", "NCCL_IB_TC is 105, on most hosts 106"),
    ]


def test_the_firmware_of_a_second_port_is_judged_by_its_own_settings() -> None:
    kept = {"CNP_DSCP_P1": "4", "CNP_DSCP_P2": "48"}
    nics = {"rail0": replace(CARD, pci="0000:18:00.1", settings=kept, next_settings=kept)}
    assert said(scene(fabric(), observation("gpu01", Facts(host=HOST, nics=nics))), "host.firmware-settings") == []
    nics = {"rail0": replace(nics["rail0"], next_settings=kept | {"CNP_DSCP_P2": "4"})}
    texts = [
        text for *_, text in said(scene(fabric(), observation("gpu01", Facts(nics=nics))), "host.firmware-settings")
    ]
    assert texts == [
        "from its next reset on CNP_DSCP_P2 is 4, not 48",
        "settings wait for a reset: CNP_DSCP_P2 48 → 4",
    ]
