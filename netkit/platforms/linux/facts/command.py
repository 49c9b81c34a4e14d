"""Commands that read a host: few, each for all NICs where the tool is quick.

One `grep` reads all files. A NIC whose tool hangs costs a few seconds and does not affect the others.
"""

import shlex
from collections.abc import Iterable

from netkit.platforms.linux.facts.hardware import APP_SHOWN
from netkit.platforms.linux.facts.reading import CLASS, CONF, CONF_V6, LAST, PCI, PROBE_INTERVAL, SYSCTLS
from netkit.platforms.view import SubjectNic, ViewSubject

TIMEOUT_S = 3
COUNTED = (
    r"_phy:|_prio[0-7]_|vport_rdma|pause_storm|outbound_pci_stalled"
    r"|_frames_pri[0-7]:|_packets_pri[0-7]:|pfc_pri[0-7]_.x_duration_us|link_down_events:|rx_corrected_bits:|rx_bits:"
)
"""Selects the relevant ones of thousands of rows, most of which are for single rings."""
FIRMWARE = (
    *("LINK_TYPE", "ROCE_", "CNP_", "PCI_WR_ORDERING", "USER_PROGRAMMABLE_CC", "TX_SCHEDULER_LOCALITY_MODE"),
    *("MULTIPATH_DSCP", "ADVANCED_PCI_SETTINGS", "MAX_ACC_OUT_READ", "ATS_ENABLED", "SRIOV_EN", "NUM_OF_VFS"),
    "LLDP_NB_",
)
FIRMWARE_TOOL = "t=$(command -v "
"""Prefix of commands that query the firmware of a NIC."""
OF_KERNEL = ("grep ", "ip ", "for f in 4 6;", "exec 3>&1", "lldpcli ", "readlink ")
LLDP = "lldpcli -f json0 show neighbors details"
ADDRESSES = "ip -j -d address show"
DEFAULTS = 'for f in 4 6; do echo "#@ $f"; ip -j -$f route show default 2>/dev/null; echo "#= $?"; done'
TOPOLOGY = f"readlink -f {PCI}/*; echo '#@ gpus'; grep -slE '^0x(0302|1200)' {PCI}/*/class; echo '#= end'"
"""GPUs are 3D controllers or processing accelerators."""
LSPCI = "lspci -D -vv 2>/dev/null && echo '#= end'"
DEVINFO = "ibv_devinfo"
VERSIONS = (
    "{ ofed_info -n || ofed_info -s; mlxlink --version || mstlink --version; "
    "ls /usr/lib/libnccl.so.2.*.* /usr/lib64/libnccl.so.2.*.* /usr/lib/*/libnccl.so.2.*.*; } 2>/dev/null; echo '#= end'"
)
ABOUT = (
    *("/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id", "/proc/uptime"),
    *("/etc/os-release", "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/product_serial", "/etc/nccl.conf"),
    *(f"/sys/module/{name}/version" for name in ("mlx5_core", "bnxt_en", "ionic", "nvidia", "nvidia_peermem")),
    *("/sys/module/nvidia_peermem/initstate", "/proc/sys/net/ipv4/tcp_ecn"),
)
ABOUT_NIC = (
    *("uevent", "numa_node", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
    *("iommu_group/type", "net/*/address", "net/*/speed", "net/*/phys_port_name", "net/*/ecn/roce_?p/enable/*"),
    *("net/*/ecn/roce_np/cnp_*", "infiniband/*/fw_ver", "infiniband/*/board_id", "infiniband/*/hca_type"),
    *("infiniband/*/ports/1/state", "infiniband/*/tc/1/traffic_class"),
    *(f"infiniband/*/ports/1/{what}/{index}" for what in ("gids", "gid_attrs/types") for index in ("[0-9]", "1[0-5]")),
)
OF_LAGS = (
    *("bonding/slaves", "bonding/mii_status", "bonding/ad_aggregator", "bonding/ad_partner_mac"),
    *("bonding_slave/state", "bonding_slave/mii_status", "bonding_slave/ad_aggregator_id"),
)
"""Documentation/ABI/testing/sysfs-class-net and sysfs-driver-bonding of the kernel."""
COUNTS_OF_KERNEL = (
    *("net/*/statistics/?x_bytes", "net/*/statistics/?x_packets", "net/*/statistics/?x_errors"),
    *("net/*/statistics/?x_dropped", "net/*/carrier_changes"),
)
COUNTS_OF_NIC = (
    *("net/*/phys_port_name", *COUNTS_OF_KERNEL, "infiniband/*/ports/1/hw_counters/*"),
    *("infiniband/*/ports/1/counters/port_rcv_data", "infiniband/*/ports/1/counters/port_xmit_data"),
    "infiniband/*/ports/1/counters/link_downed",
)


def files(subject: ViewSubject) -> str:
    """Read all files with settings of the host and its NICs."""
    paths = list(ABOUT)
    for name in ("all", "default", *(shlex.quote(nic.interface) for nic in subject.nics)):
        paths += (f"{CONF}/{name}/{key}" for key in SYSCTLS)
        paths.append(f"{CONF_V6}/{name}/{PROBE_INTERVAL}")
    for nic in subject.nics:
        paths += (f"{PCI}/{nic.pci}/{name}" for name in ABOUT_NIC)
        paths.append(f"/sys/kernel/debug/mlx5/{nic.pci}/cc_params/np_cnp_*")
        paths.append(f"/sys/kernel/config/rdma_cm/{shlex.quote(nic.rdma)}/ports/1/default_roce_tos")
        paths.append(f"/sys/kernel/config/bnxt_re/{shlex.quote(nic.rdma)}/ports/1/cc/apply")
    paths += (f"{CLASS}/net/{shlex.quote(name)}/speed" for name in subject.beside)
    paths += (f"{CLASS}/net/*/{name}" for name in OF_LAGS if subject.has_lags)
    return _grep(paths)


def counts(subject: ViewSubject) -> str:
    """Read all files with counters."""
    paths = [f"{PCI}/{nic.pci}/{name}" for nic in subject.nics for name in COUNTS_OF_NIC]
    for interface in map(shlex.quote, subject.beside):
        paths += (f"{CLASS}/{name.replace('*', interface, 1)}" for name in COUNTS_OF_KERNEL)
    return _grep(paths)


def statistics(subject: ViewSubject) -> str:
    """Read the driver's counters."""
    return f"{{ {_each(subject, f'timeout {TIMEOUT_S} ethtool -S $n')}; }} | grep -E '^#|{COUNTED}'"


def module(subject: ViewSubject) -> str:
    """Read the memory of the modules."""
    return _each(subject, f"timeout {TIMEOUT_S} ethtool -m $n", *subject.beside)


def fec(subject: ViewSubject) -> str:
    """Read FEC, with its counters where ethtool is 5.14 or later."""
    show = f"timeout {TIMEOUT_S} ethtool"
    return _each(subject, f"{show} -I --show-fec $n || {show} --show-fec $n", *subject.beside)


def pause(subject: ViewSubject) -> str:
    """Read 802.3x pause."""
    return _each(subject, f"timeout {TIMEOUT_S} ethtool -a $n")


def qos(subject: ViewSubject) -> str:
    """Read QoS with the vendor's tool, else with the kernel's."""
    own = f"timeout {TIMEOUT_S} mlnx_qos -i $n"
    show = f"timeout {TIMEOUT_S} dcb -N"
    app = f"{show} app show dev $n && echo '{APP_SHOWN}'"
    parts = "; ".join([app, *(f"{show} {part} show dev $n" for part in ("pfc", "ets", "buffer"))])
    return f"if command -v mlnx_qos >/dev/null; then {_each(subject, own)}; else {_each(subject, parts)}; fi"


def slowness(command: str) -> int:
    """Rank a command by how long it may block: the kernel, then NIC tools, then NIC firmware."""
    if command.startswith(FIRMWARE_TOOL):
        return 2
    return 0 if command.startswith(OF_KERNEL) else 1


def mlxlink(nic: SubjectNic) -> str:
    """Query a NIC for module, bit errors and FEC; without JSON where the tool is old."""
    asked = f"-d {shlex.quote(nic.pci)} -m -c --rx_fec_histogram --show_histogram"
    return f"{FIRMWARE_TOOL}mlxlink || command -v mstlink) || exit 127; $t {asked} --json || $t {asked}"


def link_up(subject: ViewSubject) -> str:
    """Query all NICs for the time their links took to come up."""
    nics = " ".join(shlex.quote(f"{nic.interface},{nic.pci}") for nic in subject.nics)
    asked = f"timeout {TIMEOUT_S} $t -d ${{n#*,}} --reg_name PDDR --get --indexes local_port=1,page_select=8"
    each = f'for n in {nics}; do echo "#@ ${{n%,*}}"; {asked} 2>/dev/null; echo "#= $?"; done'
    return f"{FIRMWARE_TOOL}mlxreg || command -v mstreg) || exit 127; {each}"


def firmware(nic: SubjectNic) -> str:
    """Query the firmware settings of a NIC, and whether adaptive routing is forced until its next reset."""
    wanted, pci = "|".join(FIRMWARE), shlex.quote(nic.pci)
    query = f"$t -d {pci} -e query | grep -E '{wanted}'"
    register = "r=$(command -v mlxreg || command -v mstreg)"
    forced = f"timeout {TIMEOUT_S} $r -d {pci} --reg_name ROCE_ACCL --get 2>/dev/null | grep adaptive_routing_forced_en"
    return f"{FIRMWARE_TOOL}mlxconfig || command -v mstconfig) || exit 127; {query}; {register} && {forced}; true"


def lookups(subject: ViewSubject) -> str:
    """Look up routes in the kernel, all with one process; errors follow the answers."""
    lines = (
        f"route get {to} {f'from {source} ' if source else ''}oif {interface}"
        for source, interface, to in subject.lookups
    )
    asked = " ".join(map(shlex.quote, lines))
    answer = f"errors=$(printf '%s\\n' {asked} | ip -force -j -batch - 2>&1 >&3)"
    return f"exec 3>&1; {answer}; echo '#@ complaints'; echo \"$errors\""


def _grep(patterns: Iterable[str]) -> str:
    """Print files and an end marker; missing and unreadable files are not a failure."""
    return f"grep -asHZ -d skip '' {' '.join(patterns)}; printf '{LAST}\\0\\n'"


def _each(subject: ViewSubject, command: str, *beside: str) -> str:
    names = " ".join(map(shlex.quote, (*(nic.interface for nic in subject.nics), *beside)))
    return f'for n in {names}; do echo "#@ $n"; {{ {command}; }} 2>/dev/null; echo "#= $?"; done'
