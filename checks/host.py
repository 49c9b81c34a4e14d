"""GPU hosts: kernel, PCIe and NIC settings that RDMA at line rate depends on."""

from collections import Counter
from collections.abc import Iterator, Mapping

from netkit.design.clusters import operated
from netkit.design.traffic import LosslessProfile
from netkit.facts import Absent
from netkit.facts.host import HostFacts, NicFacts
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fabric_check, fail, skip, warn
from netkit.judge.bound import least_rate
from netkit.platforms import PLATFORMS

DEPLOY = "netkit plan shows whether it is configured so; netkit deploy fixes it"
AT_BOOT = "run /usr/local/sbin/netkit-nic-qos; netkit deploy installs its service"
BESIDE_OPERATOR = "force it with mlxreg at each boot: the operator that sets up this NIC does not"
LOSSES = "netkit check load optics pfc for this NIC and those it talks to"
AGAIN: Mapping[str, str] = {
    "local_ack_timeout": "answers that never came",
    "adaptive_retransmits": "sent again before a timeout",
    "packet_seq_err": "asked for again",
    "out_of_sequence": "arrived out of order",
    "icrc_errors": "arrived with a wrong checksum",
}
UNORDERED = frozenset({"answers that never came", "arrived with a wrong checksum"})
"""Counters that reordering does not increase."""
CLASS_KEYS = frozenset({"NCCL_IB_TC", "NCCL_GIN_IB_TC", "NVSHMEM_IB_TRAFFIC_CLASS"})
LEAST_READ_BYTES = 4096
RDMA_MTUS = (256, 512, 1024, 2048, 4096)
RDMA_HEADERS = 96
"""The part of the MTU that the kernel reserves for all headers RoCEv2 may need."""


@device_check(layer="host", needs=["host"], on="host", follows=[])
def sysctls(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The kernel answers ARP on the NIC that has the address, and lets answers come back by any NIC of the rails.

    Otherwise the wrong NIC answers for a rail, or strict reverse path filtering drops packets. Over IPv6 it probes an
    unresponsive gateway every second: its rail is unreachable until it answers. `netkit deploy` sets the values;
    if they change back, another file in /etc/sysctl.d sets them.
    """
    del context
    found = device.facts.host
    if isinstance(found, Absent):
        return
    for name, nic in device.nics.items():
        for key, is_right, wanted in (
            ("rp_filter", lambda value: value in {0, 2}, "0 or 2"),
            ("arp_ignore", lambda value: value >= 1, "1 or more"),
            ("arp_announce", lambda value: value == 2, "2"),
        ):
            value = _effective(found, name, key)
            if value is None:
                yield skip(name, f"{key} was not read")
            elif not is_right(value):
                yield fail(name, f"{key} is {value} in effect, not {wanted}", DEPLOY)
            else:
                yield PASSED
        if nic.address_v6:
            yield _probing(found, name)


def _probing(host: HostFacts, name: str) -> Finding:
    """Check that the kernel probes an unresponsive IPv6 gateway every second."""
    interval = host.sysctls.get(f"net.ipv6.conf.{name}.router_probe_interval", "")
    if not interval.isdecimal():
        return skip(name, "router_probe_interval was not read")
    if int(interval) > 1:
        return fail(name, f"router_probe_interval is {interval} s, not 1 s", DEPLOY)
    return PASSED


def _effective(host: HostFacts, name: str, key: str) -> int | None:
    """The effective value of an interface: the kernel uses the higher of `all` and its own."""
    texts = [host.sysctls.get(f"net.ipv4.conf.{one}.{key}", "") for one in ("all", name)]
    values = [int(text) for text in texts if text.isdecimal()]
    return max(values) if values else None


@device_check(layer="host", needs=["host"], on="host", follows=[])
def acs(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No PCI bridge between GPUs and NICs sends their traffic to the root complex first (ACS).

    With ACS on, GPUDirect takes the long way through the CPU: a third of the bandwidth, and pauses to the leaf. Turn it
    off in the BIOS, or at boot with setpci; if virtual machines need it, use ATS.
    """
    del context
    found = device.facts.host
    if isinstance(found, Absent):
        return
    if found.bridges_with_acs is None:
        yield skip("", "what its PCI bridges redirect could not be seen; lspci needs root")
    elif found.bridges_with_acs:
        bridges = ", ".join(found.bridges_with_acs[:4])
        text = f"ACS redirects on {len(found.bridges_with_acs)} PCI bridges: {bridges}"
        yield fail("", text, "turn ACS off in the BIOS, or at boot")
    else:
        yield PASSED


@device_check(layer="host", needs=["nics"], on="host", follows=[])
def pcie(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every NIC has all of its PCIe lanes at full speed, large reads, and relaxed ordering.

    A slot that trained at half its width halves the rail; the NIC then holds up its leaf with pauses. Reseat the card.
    """
    del context
    for name, nic in _cards(device):
        yield from _link(name, nic)
        if nic.read_request_bytes is not None and nic.read_request_bytes < LEAST_READ_BYTES:
            text = f"asks for {nic.read_request_bytes} bytes of PCIe at a time, not for {LEAST_READ_BYTES}"
            yield warn(name, text, "set MaxReadReq to 4096 with setpci or in the BIOS")
        if nic.has_relaxed_ordering is False:
            yield warn(name, "relaxed ordering is off", "set PCI_WR_ORDERING in the firmware: mlxconfig")


def _link(name: str, nic: NicFacts) -> Iterator[Finding]:
    now, full = (nic.pci_gt_s, nic.pci_width), (nic.pci_full_gt_s, nic.pci_full_width)
    if None in now or None in full:
        yield skip(name, "the host does not report the PCIe link of this NIC")
    elif now != full:
        text = f"its PCIe link runs at {now[0]:g} GT/s × {now[1]}, it could run at {full[0]:g} GT/s × {full[1]}"
        yield fail(name, text, "reseat the card; see the slot's settings in the BIOS")
    else:
        yield PASSED


@device_check(layer="host", needs=["nics"], on="host", follows=["links.mtu", "links.up", "routes.addresses"])
def rdma(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """RDMA uses the largest packets that fit the MTU, and the RoCEv2 address has one index on all NICs of a host.

    A smaller RDMA MTU costs bandwidth; an index that differs sends a job's traffic as RoCEv1, which switches drop. See
    the MTU of the interface, then load the driver again.
    """
    del context
    wanted = max((mtu for mtu in RDMA_MTUS if mtu + RDMA_HEADERS <= device.device.mtu_bytes), default=RDMA_MTUS[0])
    cards = list(_cards(device))
    indexes = Counter(nic.roce_gid_index for _, nic in cards if nic.roce_gid_index is not None)
    usual = indexes.most_common(1)[0][0] if indexes else None
    for name, nic in cards:
        if nic.active_mtu_bytes is None:
            yield skip(name, "the host does not report the RDMA MTU")
        elif nic.active_mtu_bytes != wanted:
            yield fail(name, f"RDMA packets carry {nic.active_mtu_bytes} bytes, not {wanted}", "see the MTU of the NIC")
        else:
            yield PASSED
        if nic.roce_gid_index is None:
            yield skip(name, "no RoCEv2 index of its address was found")
        elif nic.roce_gid_index != usual:
            text = f"the RoCEv2 index of its address is {nic.roce_gid_index}, on the other NICs {usual}"
            yield fail(name, text, "see stale addresses of the NIC; reload its driver")
        else:
            yield PASSED


@device_check(layer="host", needs=["host", "nics"], on="host", follows=[])
def affinity(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """Every GPU shares a PCIe switch with the NIC of its rail, and every NIC serves as many GPUs as the others.

    A GPU that reaches its NIC over the CPU's interconnect slows all collectives of its rail. Move the card, or correct
    the order of PCI addresses in the host model.
    """
    del context
    found = device.facts.host
    if isinstance(found, Absent):
        return
    if not found.nearest_nic:
        yield skip("", "which NIC is nearest to each GPU could not be seen")
        return
    served = Counter(found.nearest_nic.values())
    wanted = max(1, round(sum(served[name] for name in device.nics) / max(1, len(device.nics))))
    for name in device.nics:
        if served[name] == wanted:
            yield PASSED
        else:
            text = f"is the nearest NIC of {served[name]} GPUs, not of {wanted}"
            yield fail(name, text, "see the host model's PCI list")


@device_check(layer="host", needs=["nics"], on="host", follows=[])
def firmware_settings(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The firmware settings of a NIC are in effect, and its stored CNP settings match the intent.

    Settings take effect when the NIC is reset: until then it behaves as before, and differs after the next reboot.
    Empty the host, then reset the NIC with mlxfwreset, or reboot. Run-time settings of the driver hide wrong
    firmware settings until it is reloaded: set them with mlxconfig.
    """
    for name, nic in _cards(device):
        for text in _forgotten(context.fabric.lossless, nic):
            yield warn(
                name, f"from its next reset on {text}", "set it with mlxconfig", cause="settings of NIC firmware"
            )
        waiting = {
            key: (nic.settings[key], value)
            for key, value in nic.next_settings.items()
            if key in nic.settings and nic.settings[key] != value
        }
        if not nic.settings:
            yield skip(name, "its firmware settings were not read")
        elif waiting:
            shown = ", ".join(f"{key} {now} → {then}" for key, (now, then) in list(waiting.items())[:3])
            yield warn(name, f"settings wait for a reset: {shown}", "reset the NIC when the host is idle: mlxfwreset")
        else:
            yield PASSED


@device_check(layer="host", needs=["nics"], on="host", follows=[])
def adaptive_routing(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """A NIC requests adaptive routing for all its packets if its leaf routes adaptively.

    Otherwise each of its flows stays on one path: its rail is slow although spines have capacity. The
    register that forces it is cleared by every reset; the service netkit-nic-qos sets it at each boot, unless `nic_qos`
    gives the NICs to the operator of a cluster.
    """
    remedy = BESIDE_OPERATOR if device.name in operated(context.fabric) else AT_BOOT
    for name, nic in _cards(device):
        if not context.fabric.switch(device.nics[name].leaf).adaptive_routing:
            continue
        if nic.is_adaptive_routing_forced is None:
            yield skip(name, "whether adaptive routing is forced (ROCE_ACCL) was not read; mlxreg shows it")
        elif not nic.is_adaptive_routing_forced:
            yield warn(name, "adaptive routing is not forced (ROCE_ACCL), while its leaf routes adaptively", remedy)
        else:
            yield PASSED


@device_check(
    layer="host",
    needs=["counters"],
    on="host",
    window=True,
    follows=["load", "links", "optics.fec", "qos", "watchdog", "pfc", "routes", "bgp", "ecn-cnp.unmarked"],
)
def repeats(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """RDMA never gives up, and hardly retransmits.

    A queue pair that gave up has ended a job. Packets that were requested again, and answers that never came, mean that
    packets were lost: see `netkit check load optics pfc` for this NIC and for those it talks to. Where adaptive routing
    reorders packets, those that came out of order do not count, and losses are expected where a switch has no
    lossless class.
    """
    is_lossy = any(PLATFORMS[switch.platform].lacks("pfc") for switch in context.fabric.switches)
    for name, nic in device.nics.items():
        dead = [device.delta(counter, name) for counter in ("retries_exceeded", "rnr_retries_exceeded")]
        again = {words: device.delta(counter, name) for counter, words in AGAIN.items()}
        if context.fabric.switch(nic.leaf).adaptive_routing:
            again = {words: delta for words, delta in again.items() if words in UNORDERED}
        known = {words: delta for words, delta in again.items() if delta.is_known}
        most = max((least_rate(delta.value, delta.seconds) for delta in known.values()), default=0.0)
        if any(delta.value for delta in dead):
            count = sum(delta.value for delta in dead)
            text = f"queue pairs gave up {count} times: jobs over this NIC broke off"
            yield fail(name, text, LOSSES, touches=[nic.leaf])
        elif not known:
            yield skip(name, "the NIC does not report what RDMA retransmits")
        elif most > context.limits.rdma_repeats_per_s and is_lossy:
            yield skip(name, "a switch without a lossless class loses packets whenever it is full")
        elif most > context.limits.rdma_repeats_per_s:
            counts = ", ".join(f"{delta.value} {words}" for words, delta in known.items() if delta.value)
            yield warn(name, f"RDMA loses packets: {counts}", LOSSES, touches=[nic.leaf])
        else:
            yield PASSED


@device_check(layer="qos", needs=["host", "nics"], on="host", follows=[])
def nccl(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """What NCCL's file sets for all jobs fits the fabric: the class of their packets, and the index of their address.

    NCCL and NVSHMEM mark some packets themselves, whatever the NIC is set to: with another traffic class they
    use an unprotected queue. Correct /etc/nccl.conf with `netkit deploy`; a job's own environment overrides it.
    """
    found, wanted = device.facts.host, context.fabric.lossless.tos
    if isinstance(found, Absent):
        return
    if found.nccl is None or not CLASS_KEYS & found.nccl.keys():
        yield skip("", "no /etc/nccl.conf sets NCCL_IB_TC: each job has to")
    for key in sorted(CLASS_KEYS & (found.nccl or {}).keys()):
        value = (found.nccl or {})[key]
        if value == str(wanted):
            yield PASSED
        else:
            dscp = int(value) >> 2 if value.isdecimal() else None
            text = f"{key} is {value}, not {wanted}" + ("" if dscp is None else f": packets leave with DSCP {dscp}")
            yield fail("", text, DEPLOY, cause=f"{key} of {device.name}")
    yield from _indexes(device, (found.nccl or {}).get("NCCL_IB_GID_INDEX", ""))


def _indexes(device: DeviceContext, index: str) -> Iterator[Finding]:
    """Yield a finding for each NIC whose RoCEv2 address does not have the index that jobs use."""
    for name, nic in _cards(device):
        if index and nic.roce_gid_index is not None and str(nic.roce_gid_index) != index:
            text = f"NCCL_IB_GID_INDEX is {index}, the RoCEv2 index of its address is {nic.roce_gid_index}"
            yield fail(name, text, "leave it out of /etc/nccl.conf: NCCL 2.21 and later finds it by itself")


def _forgotten(profile: LosslessProfile, nic: NicFacts) -> Iterator[str]:
    """Yield stored firmware settings of a NIC that differ from the intent."""
    kept = {**nic.settings, **nic.next_settings}
    port = 2 if nic.pci.endswith(".1") else 1  # of a card with two
    wanted = {f"CNP_DSCP_P{port}": profile.cnp_dscp, f"CNP_802P_PRIO_P{port}": profile.cnp.priority}
    for key, value in wanted.items():
        if kept.get(key, "").isdecimal() and int(kept[key]) != value:
            yield f"{key} is {kept[key]}, not {value}"
    mask = kept.get(f"ROCE_CC_PRIO_MASK_P{port}", "")
    if mask.isdecimal() and not int(mask) & 1 << profile.roce.priority:
        yield f"ROCE_CC_PRIO_MASK_P{port} is {mask}: no congestion control on priority {profile.roce.priority}"


NAMES_NICS = "NCCL_IB_HCA"


@fabric_check(layer="host", needs=["host"], follows=[], reads=["system", "nics"])
def uniform(context: CheckContext) -> Iterator[Finding]:
    """All hosts run the same kernel, drivers and NCCL settings.

    A single host that differs often hangs a collective. Bring it to the versions of the others. Drivers and tools are
    compared among hosts whose NICs have one driver, and the names of NICs among hosts of one model.
    """
    hosts = [(device.name, device.facts.host) for device in context.hosts if not isinstance(device.facts.host, Absent)]
    kernels = {
        device.name: device.facts.system.kernel
        for device in context.hosts
        if not isinstance(device.facts.system, Absent)
    }
    yield from _alike("kernel", kernels)
    drivers = {device.name: frozenset(nic.driver for _, nic in _cards(device)) for device in context.hosts}
    for own in dict.fromkeys(drivers.values()):
        alike = [(name, found) for name, found in hosts if drivers[name] == own]
        for tool in sorted({tool for _, found in alike for tool in found.tools}):
            yield from _alike(tool, {name: found.tools.get(tool, "none") for name, found in alike})
    for key in sorted({key for _, found in hosts for key in found.nccl or ()}):
        values = {name: (found.nccl or {}).get(key, "not set") for name, found in hosts}
        models = {host.name: host.model.name if key == NAMES_NICS else "" for host in context.fabric.hosts}
        for model in sorted(set(models.values())):
            yield from _alike(key, {name: value for name, value in values.items() if models[name] == model})


def _alike(what: str, values: Mapping[str, str]) -> Iterator[Finding]:
    known = {name: value for name, value in values.items() if value}
    if not known:
        return
    usual = Counter(known.values()).most_common(1)[0][0]
    for name, value in known.items():
        if value != usual:
            text = f"{what} is {value}, on most hosts {usual}"
            yield warn("", text, "bring the host to what the others have", device=name, cause=f"{what} of {name}")
        else:
            yield PASSED


def _cards(device: DeviceContext) -> Iterator[tuple[str, NicFacts]]:
    found = device.facts.nics
    if not isinstance(found, Absent):
        yield from ((name, found[name]) for name in device.nics if name in found)
