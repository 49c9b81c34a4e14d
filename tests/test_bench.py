"""The benchmark runs, measures every row, and distinguishes measured from absent values. No figure is judged."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import pull
from bench.fabrics import CLUSTERED, CLUSTERS, GROWTH, SMALLEST, SPEED, Shape, write
from bench.measure import BenchError, Sample, run, spread
from bench.plan import Bench, Programs, make
from bench.report import growth, verdict
from bench.task import OUT, Outputs, Task, measure_all, ratios
from netkit import design, intent
from netkit.design import Fabric
from netkit.hardware import Catalog
from tests.fleet.rabbitmq_server import needs_rabbitmq
from tests.lab.running import needs_lab

ROOT = Path(__file__).parent.parent
PACE_S = 0.05
ROWS = [
    ("render eos", "netkit"),
    ("render nvue", "netkit"),
    ("render sonic", "netkit"),
    ("hosts, supernet routes", "netkit"),
    ("hosts, per-leaf routes", "netkit"),
    ("all", "netkit"),
    ("all, kubernetes", "netkit"),
    ("all, slurm", "netkit"),
    ("netkit --help", "netkit"),
]


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    written = tmp_path_factory.mktemp("bench") / "bench.json"
    command = [sys.executable, "-m", "bench", "--quick", "--no-peer", "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(written.read_text(encoding="utf-8")), done.stdout


@pytest.mark.whole
def test_a_quick_run_measures_every_row(quick: tuple[dict[str, Any], str]) -> None:
    found, _ = quick
    assert [(row["name"], row["subject"]) for row in found["rows"]] == ROWS
    assert {row["name"] for row in found["rows"] if not row["lines"]} == {"netkit --help"}
    for row in found["rows"]:
        assert row["runs"] == 1
        assert 0 < row["wall_s"]["min"] <= row["wall_s"]["median"] <= row["wall_s"]["max"]
        assert row["peak_mb"]["min"] > 5


@pytest.mark.whole
def test_a_quick_run_grows_the_fabric(quick: tuple[dict[str, Any], str]) -> None:
    found, _ = quick
    assert [step["devices"] for step in found["growth"]["steps"]] == [12, 22, 44]
    assert found["verdict"] is None


@pytest.mark.whole
def test_an_adoption_is_measured_beside_rendering(tmp_path: Path) -> None:
    written = tmp_path / "adopting.json"
    command = [sys.executable, "-m", "bench.adopting", "--quick", "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(written.read_text(encoding="utf-8"))) == ["rendering", "adopting"]


@pytest.mark.whole
def test_a_comparison_of_snapshots_is_measured_beside_reading_them(tmp_path: Path) -> None:
    written = tmp_path / "compare.json"
    command = [sys.executable, "-m", "bench.compare", "--quick", "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(written.read_text(encoding="utf-8"))
    assert list(found) == ["reading both", "comparing"]
    assert 0 < found["reading both"]["cpu_s"] < found["comparing"]["cpu_s"]


@needs_lab
@needs_rabbitmq
@pytest.mark.whole
def test_a_fleet_is_measured_beside_one_process_on_recorded_answers_of_a_lab(tmp_path: Path) -> None:
    written = tmp_path / "fleet.json"
    answers = tmp_path / "answers.json"
    command = [sys.executable, "-m", "bench.fleet", "--quick", "--json", str(written), "--answers", str(answers)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(written.read_text(encoding="utf-8"))}
    assert {name: row["devices"] for name, row in rows.items()} == {
        "1 worker": 16,
        "2 workers": 16,
        "one process": 16,
        "Nornir and NAPALM": 12,
    }
    fleets = [rows["1 worker"], rows["2 workers"]]
    judged = {(row["output"]["examined"], row["output"]["results"]) for row in (*fleets, rows["one process"])}
    assert len(judged) == 1, "a fleet judges what one process judges"
    assert all(row["worker_ms"] > 0 and row["kilobytes"] > 0 and row["worker_mb"] > 5 for row in fleets)


def test_the_pull_requests_that_are_measured_change_the_superpod() -> None:
    text = (ROOT / pull.FABRIC / "fabric.yaml").read_text(encoding="utf-8")
    assert [text.count(before) for (before, _), _ in pull.ROWS.values()] == [1, 1]


@pytest.mark.whole
def test_plans_are_measured_with_and_without_the_cache(tmp_path: Path) -> None:
    written = tmp_path / "planning.json"
    command = [sys.executable, "-m", "bench.planning", "--quick", "--no-peer", "--platforms", "nvue"]
    done = subprocess.run(
        [*command, "--json", str(written)], cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(written.read_text(encoding="utf-8"))
    assert [(row["platform"], row["devices"]) for row in found["rows"]] == [("nvue", 44), ("linux", 12)]
    assert all(row[kind]["peak_mb"]["max"] > 5 for row in found["rows"] for kind in ("cold", "remembered"))
    assert "hier_config: absent" in done.stdout


@pytest.mark.whole
def test_a_quick_run_judges_a_healthy_fabric_and_finds_it_healthy(tmp_path: Path) -> None:
    written = tmp_path / "judging.json"
    command = [sys.executable, "-m", "bench.judging", "--quick", "--no-peer", "--json", str(written)]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(written.read_text())
    assert [row["name"] for row in rows] == ["netkit, the same eight", "netkit, all checks"]
    assert all(row["judged"] > row["results"] > 0 for row in rows)
    assert "ANTA: absent" in done.stdout


@pytest.mark.whole
def test_a_missing_peer_is_absent_and_not_measured(quick: tuple[dict[str, Any], str]) -> None:
    found, table = quick
    assert found["peer"] == {"name": "pyavd", "version": "", "state": "absent"}
    assert found["ratios"] == {}
    assert "peer: absent" in table


@pytest.mark.whole
def test_the_table_has_a_line_for_every_row(quick: tuple[dict[str, Any], str]) -> None:
    _, table = quick
    assert [name for name, _ in ROWS if not any(line.startswith(name) for line in table.splitlines())] == []


def test_the_speed_budget_is_128_leaves_by_32_spines_with_32_host_ports(tmp_path: Path) -> None:
    fabric = built(tmp_path, SPEED)
    assert len(fabric.switches) == SPEED.switches == 160
    assert {len(leaf.host_ports) for leaf in fabric.tier("leaf")} == {32}
    assert {len(leaf.fabric_ports) for leaf in fabric.tier("leaf")} == {32}
    assert sum(len(switch.ports) for switch in fabric.switches) == SPEED.ports
    assert len(fabric.hosts) == SPEED.gpu_hosts == 512


def test_devices_are_alike_at_every_size(tmp_path: Path) -> None:
    assert [shape.switches for shape in GROWTH] == [160, 500, 1000, 2000, 4000, 8000]
    average = {round(shape.ports / shape.switches, 1) for shape in GROWTH}
    assert average == {76.8, 77.8}
    fabric = built(tmp_path, GROWTH[1])
    ports = {(switch.role, len(switch.ports)) for switch in fabric.switches}
    assert ports == {("leaf", 64), ("spine", 108), ("core", 128)}


def built(folder: Path, shape: Shape, cluster: str = "") -> Fabric:
    return design.build(intent.load(write(folder / "fabric", shape, "eos", cluster=cluster)).intent, Catalog())


def test_a_run_is_accounted_with_its_children(tmp_path: Path) -> None:
    held = "held = b'x' * 60_000_000"
    child = f"import time; {held}; sum(range(3_000_000)); time.sleep(0.3)"
    parent = f"import subprocess, sys; {held}; subprocess.run([sys.executable, '-c', {child!r}])"
    alone, family = (measured_by_a_small_process(code, tmp_path) for code in (held, parent))
    assert 60 < alone["peak_mb"] < 100
    assert family["peak_mb"] > alone["peak_mb"] + 50
    assert family["cpu_s"] > alone["cpu_s"]
    assert family["wall_s"] >= 0.3


def measured_by_a_small_process(code: str, folder: Path) -> dict[str, float]:
    """Measure from a fresh interpreter, as the benchmark does: a child starts with the peak memory of its parent."""
    starter = (
        "import dataclasses, json, pathlib, sys; from bench.measure import run;"
        "print(json.dumps(dataclasses.asdict(run([sys.executable, '-c', sys.argv[1]], pathlib.Path(sys.argv[2])))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", starter, code, str(folder)], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout))


def test_a_program_that_fails_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(BenchError, match="ended with 7: no luck"):
        run([sys.executable, "-c", "print('no luck'); raise SystemExit(7)"], tmp_path)


def test_output_without_the_lossless_class_is_not_measured(tmp_path: Path) -> None:
    script = "import os, sys; os.makedirs(f'{sys.argv[1]}/leaf'); open(f'{sys.argv[1]}/leaf/eos.cfg', 'w')"
    task = Task("render eos", "peer", (sys.executable, "-c", script, OUT), 1, devices=1, platform="eos")
    with pytest.raises(BenchError, match=r"expected 1 of eos\.cfg, found 1 files, 0 of them with"):
        task.measure(tmp_path)


def test_tasks_are_interleaved_and_rare_ones_are_spread(tmp_path: Path) -> None:
    nothing = (sys.executable, "-c", "pass")
    often, rare = Task("often", "a", nothing, 4), Task("rare", "b", nothing, 2)
    assert [task.name for task in measure_all([often, rare], tmp_path)] == ["often", "often", "rare"] * 2
    assert (len(often.samples), len(rare.samples)) == (4, 2)


def test_every_run_of_netkit_starts_without_the_callers_python_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    monkeypatch.setenv("NETKIT_UPDATE_GOLDEN", "1")
    run([sys.executable, "-c", "import os; print(sorted(os.environ))"], tmp_path)
    assert "PYTHON" not in (tmp_path / "output.txt").read_text(encoding="utf-8")
    assert "NETKIT" not in (tmp_path / "output.txt").read_text(encoding="utf-8")


def bench_of(tmp_path: Path) -> Bench:
    """A full benchmark with made-up runs: one second and 50 MB each, 2 ms for each device."""
    programs = Programs(tmp_path / "netkit", tmp_path / "python")
    found = make(tmp_path, programs, ("eos",), runs=1, growth_runs=1, quick=False)
    for task in found.main:
        task.samples.append(Sample(1.0 if task.subject == "netkit" else 30.0, 1.0, 50.0, PACE_S))
        task.outputs = Outputs(1, 1, 1)
    for task in (found.start_up, *found.growth):
        cost = 0.25 + (0.002 * task.devices if task.devices > SMALLEST.switches else 0.0)
        task.samples.append(Sample(cost, cost, 50.0, PACE_S))
    return found


def test_start_up_does_not_count_as_growth(tmp_path: Path) -> None:
    flatness = growth(bench_of(tmp_path))["flatness"]
    assert flatness["cpu_ms_per_device_after_start_up"] == 1.0
    assert flatness["cpu_ms_per_device"] == pytest.approx((0.25 / 160 + 0.002) / (0.25 / 8000 + 0.002), abs=0.001)


def test_growth_is_computed_from_the_least_disturbed_runs(tmp_path: Path) -> None:
    found = bench_of(tmp_path)
    found.growth[-1].samples.append(Sample(40.0, 40.0, 50.0, PACE_S))
    assert growth(found)["flatness"]["cpu_ms_per_device_after_start_up"] == 1.0


def test_a_missed_budget_is_distinguished_from_a_kept_one(tmp_path: Path) -> None:
    found = bench_of(tmp_path)
    kept = {
        "render eos": True,
        "hosts, supernet routes": True,
        "hosts, per-leaf routes": True,
        "all, kubernetes": True,
        "all, slurm": True,
        "netkit --help": False,  # the made-up runs take a second, the budget is 0.3 s
        "flat growth": True,
    }
    assert verdict(found) == kept
    found.compared.samples[:] = [Sample(1.0, 1.0, 151.0, PACE_S)]
    found.growth[-1].samples[:] = [Sample(20.25, 20.25, 50.0, PACE_S)]
    slow = next(task for task in found.main if task.name == "all, kubernetes")
    slow.samples[:] = [Sample(3.1, 3.1, 50.0, PACE_S)]
    missed = {"render eos": False, "flat growth": False, "all, kubernetes": False}
    assert verdict(found) == {**kept, **missed}
    plain = next(task for task in found.main if task.name == "all")
    plain.samples[:] = [Sample(1.2, 1.2, 50.0, PACE_S)]
    assert verdict(found) == {**kept, **missed, "all, kubernetes": True}


def test_clusters_are_measured_with_512_hosts_in_15_units(tmp_path: Path) -> None:
    for cluster in CLUSTERS:
        found = built(tmp_path / cluster, CLUSTERED, cluster)
        (made,) = found.clusters
        assert (made.kind, len(made.nodes), len({node.host.unit for node in made.nodes})) == (cluster, 512, 15)


def test_ratios_are_of_medians(tmp_path: Path) -> None:
    found = bench_of(tmp_path)
    found.compared.samples[:] = [Sample(wall_s, 1.0, 50.0, PACE_S) for wall_s in (1.0, 2.0, 9.0)]
    assert [ratios(found.compared, peer)["wall"] for peer in found.peers] == [15.0, 15.0]


def test_a_spread_keeps_the_middle_run() -> None:
    found = spread([3.0, 1.0, 8.0])
    assert (found.min, found.median, found.max) == (1.0, 3.0, 8.0)


def test_the_script_can_be_started() -> None:
    assert os.access(ROOT / "scripts" / "bench", os.X_OK)
