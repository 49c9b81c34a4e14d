"""`nvidia-smi`: which GPU sits beside which NIC. Nothing else of a GPU is there to ask."""

from collections.abc import Iterator

from netkit.lab.personalities.linux_host import sysfs
from netkit.lab.personalities.linux_host.machine import Machine
from netkit.lab.personality import Call

LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

NIC Legend:

"""


def nvidia_smi(machine: Machine, call: Call) -> int:
    """Answer one command line."""
    words = list(call.arguments)
    if words == ["topo", "-m"]:
        call.out("".join(f"{line}\n" for line in _matrix(machine)) + LEGEND)
        call.out("".join(f"  NIC{number}: {card.rdma}\n" for number, card in enumerate(machine.cards.values())) + "\n")
        return 0
    if words == ["-L"]:
        call.out("".join(f"GPU {number}: NVIDIA H100 80GB HBM3\n" for number in range(machine.host.model.gpus)))
        return 0
    call.err("NVIDIA-SMI of the lab answers 'topo -m' and '-L'\n")
    return 2


def _matrix(machine: Machine) -> Iterator[str]:
    gpus = _sockets(machine)
    cards = list(machine.cards.values())
    names = [*(f"GPU{number}" for number in gpus), *(f"NIC{number}" for number in range(len(cards)))]
    yield "\t" + "\t".join([*names, "CPU Affinity", "NUMA Affinity"])
    for gpu, socket in gpus.items():
        cells = [" X " if other == gpu else "NV18" for other in gpus]
        cells += [_near(gpu, socket, number, sysfs.numa_node(card.pci)) for number, card in enumerate(cards)]
        yield "\t".join([f"GPU{gpu}", *cells, f"{socket * 56}-{socket * 56 + 55}", str(socket)])
    for number, card in enumerate(cards):
        own = sysfs.numa_node(card.pci)
        cells = [_near(gpu, socket, number, own) for gpu, socket in gpus.items()]
        for other_number, other in enumerate(cards):
            near = "NODE" if sysfs.numa_node(other.pci) == own else "SYS"
            cells.append(" X " if other_number == number else near)
        yield "\t".join([f"NIC{number}", *cells])


def _near(gpu: int, socket: int, nic: int, nic_socket: int) -> str:
    if gpu == nic:
        return "PIX"
    return "NODE" if socket == nic_socket else "SYS"


def _sockets(machine: Machine) -> dict[int, int]:
    """Return the processor socket of each GPU: that of the NIC beside it."""
    cards = list(machine.cards.values())
    count = machine.host.model.gpus or len(cards)
    return {gpu: sysfs.numa_node(cards[gpu].pci) if gpu < len(cards) else int(gpu >= count / 2) for gpu in range(count)}
