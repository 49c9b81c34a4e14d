"""Stand-ins for perftest's `ib_write_bw` and `ib_read_lat`, and for nccl-tests under `mpirun`.

They take the options that acceptance runs need, send real packets through the lab, and print as the tools do.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence

from netkit.design.fabric import Host, Nic
from netkit.lab.model.wiring import between
from netkit.lab.personalities.linux_host.machine import HostMachine, split_options
from netkit.lab.personality import Call
from netkit.lab.services import RdmaBench, RdmaPath
from netkit.lab.traffic.flow import FlowEnd

RULE = "-" * 87 + "\n"
VERBS = {"ib_write_bw": "RDMA_Write", "ib_read_lat": "RDMA_Read"}
WITH_VALUE = frozenset({"-d", "-x", "-s", "-q", "-D", "-n", "-p"})
HEADERS = 0.981
"""The share of the line rate without headers of Ethernet, IP and RoCE, at an MTU of 4096."""
COLLECTIVE_SHARE = 0.96
"""The share of that rate which a collective reaches."""
LATENCY_US, HOP_US = 1.2, 0.6
COLLECTIVES = ("all_reduce_perf", "all_gather_perf", "reduce_scatter_perf")
COLUMNS = "    time   algbw   busbw  #wrong"
UNITS = {"K": 2**10, "M": 2**20, "G": 2**30}


def perftest(machine: HostMachine, call: Call, bench: RdmaBench) -> int:
    names, options = split_options(call.arguments, WITH_VALUE)
    if "--help" in options:
        call.out(f"Usage:\n  {call.program} [options] <host>\n  -b  both directions   -D  duration   -d  device\n")
        return 0
    card = machine.find(options.get("-d", ""))
    if card is None:
        call.err(f" IB device {options.get('-d', '')} not found\n Unable to find the Infiniband/RoCE device\n")
        return 1
    port = int(options.get("-p", "18515"))
    if not names:
        call.out("\n*" * 3 + "\n* Waiting for client to connect... *\n")
        return 0 if bench.serve(card.nic.address, port) else 1
    server = names[-1]
    waiting, found = bench.connect(server, port), bench.find(server)
    if waiting is None or found is None:
        call.err(f"Couldn't connect to {server}:{port}\n")
        return 1
    try:
        return _client(machine, call, bench, options, card.nic, *found)
    finally:
        waiting.set()


def _client(
    machine: HostMachine, call: Call, bench: RdmaBench, options: Mapping[str, str], near: Nic, end: FlowEnd, far: Nic
) -> int:
    own = FlowEnd(machine.host.name, near.interface)
    is_both = "-b" in options
    paths = [RdmaPath(own, end), RdmaPath(end, own)][: 2 if is_both or call.program == "ib_read_lat" else 1]
    shares = bench.measure(paths, float(options.get("-D", "1")))
    kind = f"{VERBS[call.program]} {'Bidirectional ' if is_both else ''}"
    call.out(f"{RULE}                    {kind}{'BW' if call.program.endswith('_bw') else 'Latency'} Test\n")
    call.out(f" Dual-port       : OFF\t\tDevice         : {near.rdma}\n Link type       : Ethernet\n{RULE}")
    for side, nic in (("local", near), ("remote", far)):
        call.out(f" {side} address: LID 0000 QPN 0x0127 PSN 0x5de0d4\n GID: {_gid(nic.address)}\n")
    if not all(shares):
        call.err(" Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\nscnt=128, ccnt=0\n")
        return 1
    if call.program == "ib_read_lat":
        call.out(_latency(bench, own, near, end, far, shares))
    else:
        gbps = sum(shares) * min(bench.rate_gbps(near), bench.rate_gbps(far)) * HEADERS
        size = int(options.get("-s", "65536"))
        call.out(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n")
        call.out(
            f" {size}      748336           0.00               {gbps:.2f} \t\t     {gbps / size / 8e-3:.6f}\n{RULE}"
        )
    return 0


def _gid(address: str) -> str:
    return ":".join([*["00"] * 10, "255", "255", *(f"{int(part):02}" for part in address.split("."))])


def _latency(bench: RdmaBench, own: FlowEnd, near: Nic, end: FlowEnd, far: Nic, shares: Sequence[float]) -> str:
    one, other = bench.fabric.switch(near.leaf), bench.fabric.switch(far.leaf)
    hops = 1 if one is other else 3 if one.pod == other.pod else 5
    typical = (LATENCY_US + hops * HOP_US + between(0, 0.1, "latency", str(own), str(end))) / min(shares)
    return (
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99% percentile[usec]   99.9% percentile[usec] \n"
        f" 2       5000          {typical * 0.97:.2f}           {typical * 2:.2f}         {typical:.2f}     \t       "
        f"{typical * 1.01:.2f}        \t0.08   \t\t{typical * 1.1:.2f}    \t\t{typical * 2:.2f}   \n{RULE}"
    )


def mpirun(machine: HostMachine, call: Call, bench: RdmaBench) -> int:
    """Run a collective in a ring over the hosts of -H, one rank for each slot."""
    del machine
    words = list(call.arguments)
    test = next((index for index, word in enumerate(words) if word.rpartition("/")[2] in COLLECTIVES), None)
    if test is None or "-H" not in words:
        call.err("mpirun: the lab runs all_reduce_perf, all_gather_perf or reduce_scatter_perf on the hosts of -H\n")
        return 1
    slots = [place.partition(":")[::2] for place in words[words.index("-H") + 1].split(",")]
    hosts = [(bench.fabric.device(name), int(number or 1)) for name, number in slots]
    known = [(host, number) for host, number in hosts if isinstance(host, Host) and number <= len(host.nics)]
    if len(known) < max(2, len(hosts)):
        call.err("mpirun: a host is unknown, or has fewer NICs than slots\n")
        return 1
    shares = bench.measure(list(_ring(known)), 1.0)
    if not all(shares):
        call.out(
            f"{words[test]}: Test NCCL failure common.cu:1005 'remote process exited or there was a network error'\n"
        )
        return 1
    rate_gbps = min(sum(bench.rate_gbps(nic) for nic in host.nics[:number]) for host, number in known)
    for line in _table(words[test].rpartition("/")[2], known, words[test + 1 :], rate_gbps, min(shares)):
        call.out(f"{line}\n")
    return 0


def _ring(hosts: Sequence[tuple[Host, int]]) -> Iterator[RdmaPath]:
    for (host, slots), (after, _) in zip(hosts, [*hosts[1:], hosts[0]], strict=True):
        for near, far in zip(host.nics[:slots], after.nics[:slots], strict=True):
            yield RdmaPath(FlowEnd(host.name, near.interface), FlowEnd(after.name, far.interface))


def _table(
    test: str, hosts: Sequence[tuple[Host, int]], arguments: Sequence[str], rate_gbps: float, share: float
) -> Iterator[str]:
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    size, last, factor = (
        _bytes(options.get(name, default)) for name, default in (("-b", "32M"), ("-e", "32M"), ("-f", "2"))
    )
    yield f"# Collective test starting: {test}"
    yield f"# nThread 1 nGpus 1 minBytes {size} maxBytes {last} step: {factor}(factor) warmup iters: 5 iters: 20"
    ranks = [(host.name, number) for host, slots in hosts for number in range(slots)]
    for rank, (name, number) in enumerate(ranks):
        yield f"#  Rank {rank:2} Group  0 Pid {41200 + rank} on {name} device {number:2} [0000:1b:00] NVIDIA H100"
    yield f"#       size         count      type   redop    root {COLUMNS} {COLUMNS}"
    bus = rate_gbps / 8 * HEADERS * COLLECTIVE_SHARE * share
    algorithm = bus * len(ranks) / ((2 if test == COLLECTIVES[0] else 1) * (len(ranks) - 1))
    while size <= last:
        cells = f"{size / algorithm / 1e3:9.0f} {algorithm:7.2f} {bus:7.2f}       0"
        yield f"{size:12} {size // 4:13}     float     sum      -1 {cells} {cells}"
        size *= max(2, factor)
    yield "# Out of bounds values : 0 OK"
    yield f"# Avg bus bandwidth    : {bus:.3f}"


def _bytes(text: str) -> int:
    return int(text.rstrip("KMG")) * UNITS.get(text[-1:], 1)


def alone(machine: HostMachine, call: Call, bench: RdmaBench) -> int:
    del machine, bench
    call.err(f"{call.program}: the lab's hosts have no GPUs: start it with mpirun over two hosts or more\n")
    return 1


Measuring = Callable[[HostMachine, Call, RdmaBench], int]
PROGRAMS: Mapping[str, Measuring] = {
    **dict.fromkeys(VERBS, perftest),
    "mpirun": mpirun,
    **dict.fromkeys(COLLECTIVES, alone),
}
"""Programs that take seconds and change nothing, so the node is not locked while they run."""
