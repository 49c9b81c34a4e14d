"""What is asked of a host: few commands, each for all NICs at once where the tool is quick.

Files are read by one `grep`; a NIC whose tool hangs costs a few seconds and loses nothing of the others.
"""

import shlex
from collections.abc import Iterable, Iterator

from netkit.platforms.linux.facts.qos import APP_SHOWN
from netkit.platforms.linux.facts.reading import CONF, LAST, PCI, SYSCTLS
from netkit.platforms.view import SubjectNic, ViewSubject

PATIENCE_S = 3
COUNTED = r"_phy:|_prio[0-7]_|vport_rdma|pause_storm|outbound_pci_stalled"
"""Of thousands of rows, most of them of single rings, those that are counters here."""
FIRMWARE = (
    *("LINK_TYPE", "ROCE_", "CNP_", "PCI_WR_ORDERING", "USER_PROGRAMMABLE_CC", "TX_SCHEDULER_LOCALITY_MODE"),
    *("MULTIPATH_DSCP", "ADVANCED_PCI_SETTINGS", "MAX_ACC_OUT_READ", "ATS_ENABLED", "SRIOV_EN", "NUM_OF_VFS"),
    "LLDP_NB_",
)
FIRMWARE_TOOL = "t=$(command -v "
"""How a command begins that asks the firmware of a card."""
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
    "ls /usr/lib/libnccl.so.2.*.* /usr/lib64/libnccl.so.2.*.* /usr/lib/*/libnccl.so.2.*.*; } 2>/dev/null; true"
)
ABOUT = (
    *("/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease", "/proc/sys/kernel/random/boot_id", "/proc/uptime"),
    *("/etc/os-release", "/sys/class/dmi/id/product_name", "/sys/class/dmi/id/product_serial", "/etc/nccl.conf"),
    *(f"/sys/module/{name}/version" for name in ("mlx5_core", "nvidia", "nvidia_peermem")),
    *("/sys/module/nvidia_peermem/initstate", "/proc/sys/net/ipv4/tcp_ecn"),
)
ABOUT_NIC = (
    *("uevent", "numa_node", "current_link_speed", "current_link_width", "max_link_speed", "max_link_width"),
    *("iommu_group/type", "net/*/address", "net/*/speed", "net/*/phys_port_name", "net/*/ecn/roce_?p/enable/*"),
    *("net/*/ecn/roce_np/cnp_*", "infiniband/*/fw_ver", "infiniband/*/board_id", "infiniband/*/hca_type"),
    *("infiniband/*/ports/1/state", "infiniband/*/tc/1/traffic_class"),
    *(f"infiniband/*/ports/1/{what}/{index}" for what in ("gids", "gid_attrs/types") for index in ("[0-9]", "1[0-5]")),
)
COUNTS_OF_NIC = (
    "net/*/phys_port_name",
    *("net/*/statistics/?x_bytes", "net/*/statistics/?x_packets", "net/*/statistics/?x_errors"),
    *("net/*/statistics/?x_dropped", "net/*/carrier_changes", "infiniband/*/ports/1/hw_counters/*"),
    *("infiniband/*/ports/1/counters/port_rcv_data", "infiniband/*/ports/1/counters/port_xmit_data"),
    "infiniband/*/ports/1/counters/link_downed",
)


def files(subject: ViewSubject) -> str:
    """Return the command that prints all files that tell how the host is set."""
    return _grep([*ABOUT, *_sysctls(subject.nics), *(path for nic in subject.nics for path in _of_nic(nic))])


def counts(subject: ViewSubject) -> str:
    """Return the command that prints all files that count."""
    return _grep(f"{PCI}/{nic.pci}/{name}" for nic in subject.nics for name in COUNTS_OF_NIC)


def statistics(subject: ViewSubject) -> str:
    """Return the command that prints the driver's counters."""
    return f"{{ {_each(subject, f'timeout {PATIENCE_S} ethtool -S $n')}; }} | grep -E '^#|{COUNTED}'"


def module(subject: ViewSubject) -> str:
    """Return the command that reads the memory of the modules."""
    return _each(subject, f"timeout {PATIENCE_S} ethtool -m $n")


def fec(subject: ViewSubject) -> str:
    """Return the command that shows FEC, and what it counts where ethtool is 5.14 or later."""
    show = f"timeout {PATIENCE_S} ethtool"
    return _each(subject, f"{show} -I --show-fec $n || {show} --show-fec $n")


def pause(subject: ViewSubject) -> str:
    """Return the command that shows global pause."""
    return _each(subject, f"timeout {PATIENCE_S} ethtool -a $n")


def qos(subject: ViewSubject) -> str:
    """Return the command that shows QoS: by the vendor's tool, or else by the kernel's."""
    own = f"timeout {PATIENCE_S} mlnx_qos -i $n"
    show = f"timeout {PATIENCE_S} dcb -N"
    app = f"{show} app show dev $n && echo '{APP_SHOWN}'"
    parts = "; ".join([app, *(f"{show} {part} show dev $n" for part in ("pfc", "ets", "buffer"))])
    return f"if command -v mlnx_qos >/dev/null; then {_each(subject, own)}; else {_each(subject, parts)}; fi"


def slowness(command: str) -> int:
    """Return how likely a command is to keep others waiting: the kernel, then tools of NICs, then their firmware."""
    if command.startswith(FIRMWARE_TOOL):
        return 2
    return 0 if command.startswith(OF_KERNEL) else 1


def mlxlink(nic: SubjectNic) -> str:
    """Return the command that asks a card for module, bit errors and FEC; without JSON where the tool is old."""
    asked = f"-d {shlex.quote(nic.pci)} -m -c --rx_fec_histogram --show_histogram"
    return f"{FIRMWARE_TOOL}mlxlink || command -v mstlink) || exit 127; $t {asked} --json || $t {asked}"


def link_up(subject: ViewSubject) -> str:
    """Return the command that asks all cards how long their links took to come up."""
    nics = " ".join(shlex.quote(f"{nic.interface},{nic.pci}") for nic in subject.nics)
    asked = f"timeout {PATIENCE_S} $t -d ${{n#*,}} --reg_name PDDR --get --indexes local_port=1,page_select=8"
    each = f'for n in {nics}; do echo "#@ ${{n%,*}}"; {asked} 2>/dev/null; echo "#= $?"; done'
    return f"{FIRMWARE_TOOL}mlxreg || command -v mstreg) || exit 127; {each}"


def firmware(nic: SubjectNic) -> str:
    """Return the command that asks a card what its firmware keeps, and what of it is forced until its next reset."""
    wanted, pci = "|".join(FIRMWARE), shlex.quote(nic.pci)
    query = f"$t -d {pci} -e query | grep -E '{wanted}'"
    register = "r=$(command -v mlxreg || command -v mstreg)"
    forced = (
        f"timeout {PATIENCE_S} $r -d {pci} --reg_name ROCE_ACCL --get 2>/dev/null | grep adaptive_routing_forced_en"
    )
    return f"{FIRMWARE_TOOL}mlxconfig || command -v mstconfig) || exit 127; {query}; {register} && {forced}; true"


def lookups(subject: ViewSubject) -> str:
    """Return the command that asks the kernel for routes: one process for all, its complaints after its answers."""
    lines = (f"route get {to} from {source} oif {interface}" for source, interface, to in subject.lookups)
    asked = " ".join(map(shlex.quote, lines))
    answer = f"said=$(printf '%s\\n' {asked} | ip -force -j -batch - 2>&1 >&3)"
    return f"exec 3>&1; {answer}; echo '#@ complaints'; echo \"$said\""


def _grep(patterns: Iterable[str]) -> str:
    """Return a command that prints files and an end; those that are not there or cannot be read are no failure."""
    return f"grep -asHZ -d skip '' {' '.join(patterns)}; printf '{LAST}\\0\\n'"


def _sysctls(nics: Iterable[SubjectNic]) -> Iterator[str]:
    for name in ("all", "default", *(shlex.quote(nic.interface) for nic in nics)):
        yield from (f"{CONF}/{name}/{key}" for key in SYSCTLS)


def _of_nic(nic: SubjectNic) -> Iterator[str]:
    yield from (f"{PCI}/{nic.pci}/{name}" for name in ABOUT_NIC)
    yield f"/sys/kernel/debug/mlx5/{nic.pci}/cc_params/np_cnp_*"
    yield f"/sys/kernel/config/rdma_cm/{shlex.quote(nic.rdma)}/ports/1/default_roce_tos"


def _each(subject: ViewSubject, command: str) -> str:
    names = " ".join(shlex.quote(nic.interface) for nic in subject.nics)
    return f'for n in {names}; do echo "#@ $n"; {{ {command}; }} 2>/dev/null; echo "#= $?"; done'
