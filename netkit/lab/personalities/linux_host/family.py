"""NIC families: their drivers, and their names for the counters that the lab's model has as those of ConnectX.

Drivers are those of the kernel: bnxt_en and bnxt_re for Broadcom, ionic and ionic_rdma for AMD. So Broadcom's
congestion control, which only its own driver exposes, is not in /sys; AMD's is set with `nicctl`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from netkit.design.fabric import Host

PRIORITIES = range(8)


@dataclass(frozen=True, slots=True)
class NicFamily:
    """The differences between the NICs of vendors."""

    driver: str
    vendor: str
    device: str
    title: str
    """The name that lspci prints."""
    product: str
    part: str
    firmware: str
    rdma_type: str
    traffic_classes: int = 8
    """0: dcb neither shows nor sets them."""
    cnp_priority: int = 6
    """The priority of its CNPs by default."""
    hw_counters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """A counter of this family → the ConnectX counters that it sums up."""
    statistics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The same for `ethtool -S`."""

    @property
    def is_mellanox(self) -> bool:
        return self.driver == "mlx5_core"

    def counted(self, names: Mapping[str, tuple[str, ...]], counts: Mapping[str, int]) -> Mapping[str, int]:
        """Counters by the names of this family."""
        return counts if self.is_mellanox else {own: sum(counts.get(one, 0) for one in of) for own, of in names.items()}


MELLANOX = NicFamily(
    driver="mlx5_core",
    vendor="15b3",
    device="1021",
    title="Mellanox Technologies MT2910 Family [ConnectX-7]",
    product="NVIDIA ConnectX-7 HHHL Adapter Card",
    part="",
    firmware="",
    rdma_type="MT4129",
)
BROADCOM = NicFamily(
    driver="bnxt_en",
    vendor="14e4",
    device="1760",
    title="Broadcom Inc. and subsidiaries BCM57608 10Gb/25Gb/50Gb/100Gb/200Gb/400Gb Ethernet",
    product="Broadcom P1400GD 1x400G",
    part="BCM957608-P1400GDF00",
    firmware="231.2.63.0",
    rdma_type="BCM57608",
    traffic_classes=3,
    cnp_priority=7,
    hw_counters={
        "tx_cnp_pkts": ("np_cnp_sent",),
        "rx_cnp_pkts": ("rp_cnp_handled", "rp_cnp_ignored"),
        "rx_ecn_marked_pkts": ("np_ecn_marked_roce_packets",),
        "oos_drop_count": ("out_of_sequence",),
        "seq_err_naks_rcvd": ("packet_seq_err",),
        "to_retransmits": ("local_ack_timeout_err",),
        "max_retry_exceeded": ("req_transport_retries_exceeded",),
        "dup_req": ("duplicate_request",),
        "rx_roce_only_bytes": ("rx_vport_rdma_unicast_bytes",),
        "tx_roce_only_bytes": ("tx_vport_rdma_unicast_bytes",),
    },
    statistics={
        "rx_bytes": ("rx_bytes_phy",),
        "tx_bytes": ("tx_bytes_phy",),
        "link_down_events": ("link_down_events_phy",),
        "rx_bits": ("rx_bits_phy",),
        "rx_corrected_bits": ("rx_corrected_bits_phy",),
        **{f"rx_pfc_ena_frames_pri{one}": (f"rx_prio{one}_pause",) for one in PRIORITIES},
        **{f"tx_pfc_ena_frames_pri{one}": (f"tx_prio{one}_pause",) for one in PRIORITIES},
        **{f"pfc_pri{one}_rx_duration_us": (f"rx_prio{one}_pause_duration",) for one in PRIORITIES},
        **{f"pfc_pri{one}_tx_duration_us": (f"tx_prio{one}_pause_duration",) for one in PRIORITIES},
        **{f"rx_packets_pri{one}": (f"rx_prio{one}_packets",) for one in PRIORITIES},
        **{f"tx_packets_pri{one}": (f"tx_prio{one}_packets",) for one in PRIORITIES},
    },
)
AMD = NicFamily(
    driver="ionic",
    vendor="1dd8",
    device="1002",
    title="AMD Pensando Systems DSC Ethernet Controller",
    product="AMD Pensando Pollara 400 1x400G",
    part="POLLARA-1Q400P",
    firmware="1.117.1",
    rdma_type="ionic",
    traffic_classes=0,
    hw_counters={
        "tx_rdma_cnp_pkts": ("np_cnp_sent",),
        "rx_rdma_cnp_pkts": ("rp_cnp_handled", "rp_cnp_ignored"),
        "rx_rdma_ecn_pkts": ("np_ecn_marked_roce_packets",),
        "req_rx_pkt_seq_err": ("packet_seq_err",),
        "tx_rdma_ack_timeout": ("local_ack_timeout_err",),
        "req_tx_retry_excd_err": ("req_transport_retries_exceeded",),
        "rx_rdma_ucast_bytes": ("rx_vport_rdma_unicast_bytes",),
        "tx_rdma_ucast_bytes": ("tx_vport_rdma_unicast_bytes",),
    },
    statistics={
        "rx_packets": ("rx_packets_phy",),
        "tx_packets": ("tx_packets_phy",),
        "rx_bytes": ("rx_bytes_phy",),
        "tx_bytes": ("tx_bytes_phy",),
    },
)


def family_of(host: Host) -> NicFamily:
    """The family of a host's NICs, by the name of their model."""
    kind = host.model.nic
    return BROADCOM if kind.startswith("BCM") else AMD if kind.startswith("Pollara") else MELLANOX
