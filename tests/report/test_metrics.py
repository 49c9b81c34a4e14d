"""Metrics for Prometheus, and the alerts and the dashboard that use them."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from netkit.facts import COUNTERS, Facts, Observation, Sample
from netkit.facts.counter import place
from netkit.facts.device import Interface
from netkit.facts.optic import Lane, Limits, Module
from netkit.facts.qos import Buffer
from netkit.judge import CheckContext, Verdict, catalog
from netkit.judge.silence import Silence, Subject, silenced
from netkit.project.judging import judged_of
from netkit.report.metrics import COUNTED, GAUGES, metrics
from netkit.serve.metrics import OWN
from netkit.terminal.output import write_whole
from tests.command import ROOT
from tests.judge.scenes import fabric, observation, scene

MONITORING = ROOT / "docs" / "monitoring"
OF = f'fabric="{fabric().name}",'
NAME = re.compile(r"\b(?:netkit|rdma)_[a-z_]+\b")
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")


def seen() -> CheckContext:
    """A leaf with a port and a host with a NIC; nothing else was reached."""
    built = fabric()
    leaf, host = built.tier("leaf")[0], built.hosts[0]
    port, nic = leaf.ports[0].name, host.nics[0]
    module = Module(kind="optic", temperature_c=48.5, lanes={1: Lane(-3.0, 1.0, 60.0)}, limits={"rx_dbm": Limits(-8.0)})
    facts = Facts(
        interfaces={port: Interface(is_up=True), "eth0": Interface(is_up=True)},
        modules={port: module},
    )
    return scene(
        built,
        observation(
            leaf.name,
            facts,
            rx_bytes={port: (0, 1000), "eth0": (0, 5)},
            rx_pause_us={f"{port}/3": (0, 2_500_000)},
            queue_drops={f"{port}/3": (0, 4), f"{port}/5": (0, 9)},
            received_bits={port: (0, 800)},
        ),
        observation(host.name, cnp_sent={nic.interface: (10, 70)}),
    )


def text() -> str:
    found = seen()
    return metrics(found, judged_of(found, list(catalog.load().values())))


def samples(name: str) -> list[str]:
    return [line for line in text().splitlines() if line.startswith(f"{name}{{")]


def test_every_counter_has_a_metric() -> None:
    assert set(COUNTED) == set(COUNTERS)
    assert not {reported.family for reported in COUNTED.values()} & set(GAUGES)


def test_values_are_in_base_units_and_only_of_the_design() -> None:
    leaf = fabric().tier("leaf")[0]
    at = f'{OF}node="{leaf.name}",port="{leaf.ports[0].name}"'
    assert samples("netkit_port_receive_bytes_total") == [f"netkit_port_receive_bytes_total{{{at}}} 1000"]
    pause = f'netkit_port_pfc_pause_seconds_total{{{at},direction="receive",priority="3"}} 2.5'
    assert samples("netkit_port_pfc_pause_seconds_total") == [pause]
    assert samples("netkit_port_queue_drops_total") == [f'netkit_port_queue_drops_total{{{at},queue="3"}} 4']
    assert samples("netkit_port_phy_receive_bytes_total") == [f"netkit_port_phy_receive_bytes_total{{{at}}} 100"]
    assert samples("netkit_port_up") == [f"netkit_port_up{{{at}}} 1"]
    assert samples("netkit_module_bias_amperes") == [f'netkit_module_bias_amperes{{{at},lane="1"}} 0.06']
    assert samples("netkit_module_rx_margin_decibels") == [f'netkit_module_rx_margin_decibels{{{at},lane="1"}} 5']


def test_only_peaks_of_the_window_are_exported() -> None:
    leaf = fabric().tier("leaf")[0]
    new, old, empty = (port.name for port in leaf.ports[:3])
    before = {place(new, 3): Buffer(0, 5, 1), place(old, 3): Buffer(0, 7, 2), place(empty, 3): Buffer(0, 0, 0)}
    after = {
        **before,
        place(new, 3): Buffer(0, 900, 40),
        place(new, 5): Buffer(0, 8, 3),
        place("eth0", 3): Buffer(0, 0),
    }
    looks = tuple(Sample(at_s, {}, buffers=reported) for at_s, reported in ((0.0, before), (10.0, after)))
    found = scene(fabric(), Observation(leaf.name, leaf.platform, Facts(), looks))
    lines = metrics(found, judged_of(found, [])).splitlines()
    assert [line.partition("{")[::2] for line in lines if "_peak_bytes{" in line] == [
        (f"netkit_port_{what}_peak_bytes", f'{OF}node="{leaf.name}",port="{port}",{label}="3"}} {value}')
        for what, label, values in (("queue", "queue", (900, 0)), ("headroom", "priority", (40, 0)))
        for port, value in zip((new, empty), values, strict=True)
    ]


def test_a_nic_has_the_labels_of_other_exporters() -> None:
    host = fabric().hosts[0]
    nic = host.nics[0]
    own = f'{OF}host="{host.name}",device="{nic.rdma}",port="1",netdev="{nic.interface}",pci_addr="{nic.pci}"'
    place = f'rail="{nic.rail}",leaf="{nic.leaf}",leaf_port="{nic.leaf_port}"'
    assert samples("rdma_np_cnp_sent_total") == [f"rdma_np_cnp_sent_total{{{own},{place}}} 70"]


def test_every_sample_has_a_fabric_label() -> None:
    lines = [line for line in text().splitlines() if not line.startswith("#")]
    assert lines
    assert [line for line in lines if f"{{{OF.rstrip(',')}" not in line] == []


def test_every_query_of_the_dashboard_selects_the_fabric() -> None:
    said = _expressions("dashboard.json", (MONITORING / "dashboard.json").read_text(encoding="utf-8"))
    asked = [one for one in NAME.finditer(said) if not said[one.end() :].startswith(", fabric)")]
    assert asked
    assert [one[0] for one in asked if not said[one.end() :].startswith('{fabric=~"$fabric"')] == []


def test_unreported_values_are_absent_and_unreached_devices_are_down() -> None:
    found = text()
    built = fabric()
    assert "netkit_module_voltage_volts" not in found
    assert "netkit_bgp_session_up" not in found
    up = [line.rpartition(" ")[2] for line in samples("netkit_collector_up")]
    assert len(up) == len(built.names)
    assert up.count("1") == 2
    skipped = f'check="bgp.sessions",node="{built.tier("spine")[0].name}"'
    assert skipped not in found


def test_silenced_findings_are_labelled_and_excluded_from_the_alerting_status() -> None:
    broken = seen()
    judged = judged_of(broken, list(catalog.load().values()))
    lost = [one for one in judged.judgement.findings if (one.check, one.verdict) == ("load.lossless", Verdict.FAIL)]
    (leaf,) = {one.device for one in lost}
    entry = Silence("s", ("load.lossless",), (Subject.of(leaf),), "alice", "known", until_s=judged.taken_s + 60)
    quiet = replace(judged, judgement=silenced(judged.judgement, [entry], judged.taken_s, judged.layers))
    status, named = f'check="load.lossless",node="{leaf}"', "netkit_finding_silenced"
    loud_text, quiet_text = metrics(broken, judged), metrics(broken, quiet)
    assert f"netkit_check_status{{{OF}{status}}} 2" in loud_text
    assert f"netkit_check_status{{{OF}{status}}} 2" not in quiet_text
    ports = sorted({one.place.partition("/")[0] for one in lost})
    assert [line for line in quiet_text.splitlines() if line.startswith(f"{named}{{") and "load.lossless" in line] == [
        f'{named}{{{OF}{status},port="{port}"}} 2' for port in ports
    ]
    assert f"{named}{{" not in loud_text


def test_a_name_cannot_break_out_of_its_label() -> None:
    found = seen()
    judged = judged_of(found, list(catalog.load().values()))
    strange = metrics(found, replace(judged, fabric='a"b\\c\nd'))
    assert '{fabric="a\\"b\\\\c\\nd"}' in strange


@needs_promtool
def test_promtool_accepts_the_metrics() -> None:
    done = subprocess.run(["promtool", "check", "metrics"], input=text(), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_promtool
def test_alerts_are_valid_and_fire_when_they_should() -> None:
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run(["promtool", *words], cwd=MONITORING, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("file", ["alerts.yml", "dashboard.json"])
def test_only_existing_metrics_are_queried(file: str) -> None:
    known = {*GAUGES, *OWN, *(reported.family for reported in COUNTED.values())}
    text = (MONITORING / file).read_text(encoding="utf-8")
    asked = {name for name in NAME.findall(_expressions(file, text)) if not name.endswith("_lossless")}
    assert asked
    assert asked <= known


def _expressions(file: str, text: str) -> str:
    if not file.endswith(".json"):
        return text
    document = json.loads(text)
    targets = [target["expr"] for panel in document["panels"] for target in panel["targets"]]
    return "\n".join([*targets, *(one["query"] for one in document["templating"]["list"])])


def test_panels_do_not_overlap() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads((MONITORING / "dashboard.json").read_text(encoding="utf-8"))["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken
        assert max(x for x, _ in cells) < 24
        taken |= cells


def test_a_file_is_complete_or_the_previous_one(tmp_path: Path) -> None:
    file = tmp_path / "netkit.prom"
    assert write_whole(file, "one\n")
    assert not write_whole(file, "one\n")
    assert write_whole(file, "two\n")
    assert [path.name for path in tmp_path.iterdir()] == ["netkit.prom"]
