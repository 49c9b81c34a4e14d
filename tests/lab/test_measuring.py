"""Stand-ins for perftest and nccl-tests: the tools' output format, with values of the model and of real packets."""

import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import cast

import pytest

from netkit.facts.snapshot import Trial
from netkit.lab.model.wiring import LinkEnd
from netkit.lab.personalities.linux_host.machine import HostMachine
from netkit.lab.personalities.linux_host.measuring import PROGRAMS
from netkit.lab.services import RdmaBench, RdmaPath
from netkit.lab.traffic.engine import TrafficProcess
from netkit.lab.traffic.flow import FlowReport, TrafficFlow
from netkit.platforms.linux.acceptance import results
from tests.lab.model_bed import STARTED_S, Bed, small_fabric
from tests.lab.personalities.linux_host_desk import Desk, Typed

FABRIC = small_fabric()
ADDRESSES = {f"{host.name}:{nic.interface}": nic.address for host in FABRIC.hosts for nic in host.nics}


class CountingTraffic:
    """A traffic process whose packets arrive, except for a share of those to some NICs."""

    def __init__(self, lost: Mapping[str, float]) -> None:
        self._lost, self._flows = lost, dict[str, TrafficFlow]()
        self.most = self.late = 0

    def start(self, flows: Iterable[TrafficFlow]) -> None:
        self._flows |= {flow.name: flow for flow in flows}
        self.most = max(self.most, len(self._flows))

    def stop(self, names: Iterable[str]) -> None:
        for name in names:
            del self._flows[name]

    def flows(self) -> Mapping[str, FlowReport]:
        found = {flow.name: self._report(flow) for flow in self._flows.values()}
        self.late = 0
        return found

    def _report(self, flow: TrafficFlow) -> FlowReport:
        received = 100 - self.late - round(100 * self._lost.get(str(flow.destination), 0))
        return FlowReport(flow.name, flow.rate_pps, flow.rate_pps, 100, received, "")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("netkit.lab.services.MOST_S", 0.0)


def bench(lost: Mapping[str, float] | None = None, slow: str = "") -> tuple[RdmaBench, CountingTraffic]:
    traffic = CountingTraffic(lost or {})

    def share(path: RdmaPath) -> float:
        return 0.5 if slow in {str(path.source), str(path.destination)} else 1.0

    return RdmaBench(FABRIC, lambda: cast("TrafficProcess", traffic), share), traffic


def typed(on: RdmaBench, folder: Path, host: str, line: str) -> tuple[int, str]:
    program, *words = line.split()
    call = Typed(program, tuple(words))
    found = next(one for one in FABRIC.hosts if one.name == host)
    code = PROGRAMS[program](HostMachine(Desk(found, folder)), call, on)
    return code, call.printed + call.complained


def ran(on: RdmaBench, folder: Path, program: str, rail: int = 0, far: str = "gpu05") -> tuple[int, Trial]:
    """Run both ends of a tool, as an acceptance run does; return the parsed result."""
    rdma = FABRIC.hosts[0].nics[rail].rdma
    options = f"-d {rdma} -x 3 -F -b -s 65536 -q 4 -D 5 --report_gbits -p 18515"
    server = threading.Thread(target=typed, args=(on, folder, far, f"{program} {options}"))
    server.start()
    code, text = 1, "Couldn't connect"
    while text.startswith("Couldn't connect"):  # the server has not started yet
        server.join(0.01)
        code, text = typed(on, folder, "gpu01", f"{program} {options} {ADDRESSES[f'{far}:rail{rail}']}")
    server.join(10)
    assert not server.is_alive()
    found = results(text)
    assert isinstance(found, tuple)
    return code, found[0]


def test_both_directions_of_two_nics_reach_the_line_rate_without_headers(tmp_path: Path) -> None:
    on, traffic = bench()
    code, trial = ran(on, tmp_path, "ib_write_bw")
    assert (code, trial.failure, trial.is_both_ways, trial.nic) == (0, "", True, "mlx5_0")
    assert trial.ends == (ADDRESSES["gpu01:rail0"], ADDRESSES["gpu05:rail0"])
    assert [row.mean_gbps for row in trial.transfers] == [784.8]
    assert (traffic.most, traffic.flows()) == (2, {})


@pytest.mark.parametrize(
    ("lost", "slow", "gbps"),
    [({}, "gpu05:rail0", 392.4), ({"gpu05:rail0": 0.12}, "", 440.12), ({"gpu05:rail1": 0.5}, "gpu05:rail1", 784.8)],
)
def test_lost_packets_and_a_slow_cable_reduce_the_bandwidth_of_their_nic(
    lost: Mapping[str, float], slow: str, gbps: float, tmp_path: Path
) -> None:
    _, trial = ran(bench(lost, slow)[0], tmp_path, "ib_write_bw")
    assert [row.mean_gbps for row in trial.transfers] == [pytest.approx(gbps, abs=0.1)]


def test_late_packets_are_not_lost(tmp_path: Path) -> None:
    on, traffic = bench()
    traffic.late = 30
    assert [row.mean_gbps for row in ran(on, tmp_path, "ib_write_bw")[1].transfers] == [784.8]


def test_an_unreachable_nic_is_a_failure(tmp_path: Path) -> None:
    code, trial = ran(bench({"gpu05:rail0": 1.0})[0], tmp_path, "ib_write_bw")
    assert (code, trial.failure) == (1, "Completion with error at client")


def test_latency_grows_with_the_hops(tmp_path: Path) -> None:
    on, _ = bench()
    near, far = (ran(on, tmp_path, "ib_read_lat", far=host)[1].transfers[0].typical_us for host in ("gpu02", "gpu05"))
    assert near is not None
    assert far is not None
    assert near == pytest.approx(1.85, abs=0.06)
    assert far == pytest.approx(3.05, abs=0.06)


def test_without_a_server_or_a_device_a_client_fails(tmp_path: Path) -> None:
    on, _ = bench()
    address = ADDRESSES["gpu05:rail0"]
    assert typed(on, tmp_path, "gpu01", f"ib_write_bw -d mlx5_0 {address}") == (
        1,
        f"Couldn't connect to {address}:18515\n",
    )
    code, said = typed(on, tmp_path, "gpu01", f"ib_write_bw -d mlx5_77 {address}")
    assert (code, "not found" in said) == (1, True)
    assert not on.serve(address, 18515, patience_s=0.01)
    assert "use_cuda" not in typed(on, tmp_path, "gpu01", "ib_write_bw --help")[1]


def test_a_collective_is_as_fast_as_its_slowest_nic(tmp_path: Path) -> None:
    line = "mpirun -np 4 -H gpu01:2,gpu02:2 -x NCCL_ALGO=Ring all_reduce_perf -b 1G -e 8G -f 8 -g 1 -c 1 -n 20 -w 5"
    for slow, share in (("", 1.0), ("gpu02:rail1", 0.5), ("gpu03:rail1", 1.0)):
        on, traffic = bench(slow=slow)
        code, text = typed(on, tmp_path, "gpu01", line)
        found = results(text)
        assert isinstance(found, tuple)
        (trial,) = found
        assert (code, trial.failure, trial.ends, trial.ranks) == (0, "", ("gpu01", "gpu02"), 4)
        assert [row.size_bytes for row in trial.collectives] == [2**30, 2**33]
        assert trial.collectives[-1].bus_gbytes_s == pytest.approx(100 * 0.981 * 0.96 * share, abs=0.1)
        assert traffic.most == 4


@pytest.mark.parametrize(
    "line",
    ["mpirun hostname", "mpirun -H gpu01:2,gpu99:2 all_reduce_perf", "mpirun -H gpu01:9,gpu02:9 all_reduce_perf"],
)
def test_mpirun_refuses_what_the_lab_cannot_run(line: str, tmp_path: Path) -> None:
    code, said = typed(bench()[0], tmp_path, "gpu01", line)
    assert (code, said.startswith("mpirun: ")) == (1, True)


@pytest.mark.parametrize(
    ("fault", "place", "options", "ways"),
    [
        ("pause-storm", "gpu02:rail0", {"pauses_per_s": 2500.0, "share": 0.6, "burst_ms": 50.0}, (1.0, 0.4)),
        ("dirty-lane", "gpu02:rail0", {"db": 4.5, "lane": 2, "ber": 2e-3}, (1.0, 0.0)),
        ("dim-optic", "gpu02:rail0", {"db": 8.0, "lane": 0}, (1.0, 1.0)),
    ],
)
def test_the_model_slows_the_direction_of_a_fault(
    fault: str, place: str, options: dict[str, float], ways: tuple[float, float]
) -> None:
    bed, (one, other) = Bed(FABRIC), (LinkEnd("gpu02", "rail0"), LinkEnd("gpu01", "rail0"))
    bed.break_(fault, place, STARTED_S + 10, **options)
    found = [bed.model.transfer_share(*ends, STARTED_S + 20) for ends in ((one, other), (other, one))]
    assert found == [pytest.approx(ways[0], abs=0.02), pytest.approx(ways[1], abs=0.15)]
