import gzip
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import SnapshotError
from netkit.facts import Absent, Facts, Observation, Sample, Snapshot, serial
from netkit.facts.device import FileSystem, Interface, Neighbor, Probe, System
from netkit.facts.host import BgpSession, Lookup
from netkit.facts.optic import Lane, Limits, Line, Module
from netkit.facts.qos import Ecn, PortQos, Watchdog
from netkit.facts.snapshot import Collective, Stream, Transfer, Trial

WHOLE = Snapshot(
    "ai1",
    1_700_000_000.5,
    {
        "leaf01": Observation(
            "leaf01",
            "nvue",
            Facts(
                system=System("leaf01", uptime_s=3.5),
                file_systems={"/": FileSystem(2**40, 1, 0, is_read_only=False), "flash:": FileSystem()},
                interfaces={"swp1s0": Interface(is_up=True, speed_gbps=400)},
                neighbors={"swp1s0": (Neighbor("gpu01", "48:b0"), Neighbor("ghost"))},
                modules={"swp1s0": Module(lanes={1: Lane(-1.5), 4: Lane()}, limits={"rx_dbm": Limits(high_alarm=7.0)})},
                lines={"swp1s0": Line("rs", 1e-9, lane_ber={1: 1e-9})},
                sessions={"swp2s0": BgpSession(is_established=False)},
                qos={"swp1s0": PortQos(pfc_rx=frozenset({3}), dscp_to_priority={26: 3}, ecn={3: Ecn(is_on=True)})},
                watchdogs={"swp1s0/3": Watchdog(is_on=True)},
                routes=Absent("vtysh: no answer"),
                lookups=(Lookup("a", "b", "c"),),
                probes=(Probe("a", "rail0", "b", 64, 10, 9, 31.0), Probe("a", "rail0", "b", 9000, reason="too long")),
            ),
            (Sample(1.0, {"rx_bytes": {"swp1s0": 2**64 - 1}}),),
        ),
        "gpu01": Observation("gpu01", "linux", failure="connection refused"),
    },
    "{}",
    (
        Trial(tool="nccl-tests", ends=("gpu01", "gpu02"), collectives=(Collective(2**33, 95.0, None, 0),), at_s=1.5),
        Trial(tool="perftest", failure="refused", transfers=(Transfer(65536, 392.3),)),
        Trial(tool="iperf3", streams=(Stream(26, 9.5, 10.0, "TCP", 3), Stream(None, 1.0, 1.0))),
    ),
)


def test_a_snapshot_survives_a_round_trip(tmp_path: Path) -> None:
    data = serial.dump(WHOLE)
    assert serial.load(data, "f") == WHOLE
    assert serial.dump(serial.load(data, "f")) == data
    (tmp_path / "s.json.gz").write_bytes(gzip.compress(data))
    assert serial.read(tmp_path / "s.json.gz") == WHOLE


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "f: is not a snapshot; make one with netkit snapshot -o FILE"),
        (b"[]", "f: is not a snapshot; make one with netkit snapshot -o FILE"),
        (b'{"netkit_snapshot": 99}', "f: was written in format 99; this netkit reads 1; take a new snapshot"),
        (b'{"netkit_snapshot": 1}', "f: is a damaged snapshot, at fabric; take a new one"),
        (
            b'{"netkit_snapshot": 1, "fabric": "f", "taken_s": NaN, "devices": {}}',
            "f: is a damaged snapshot, at taken_s; take a new one",
        ),
        (
            b'{"netkit_snapshot": 1, "fabric": "f", "taken_s": 1e300, "devices": {}}',
            "f: is a damaged snapshot, at taken_s; take a new one",
        ),
        (b"\x1f\x8b\x08", "f: is not a snapshot; make one with netkit snapshot -o FILE"),
    ],
)
def test_a_malformed_snapshot_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(SnapshotError) as caught:
        serial.load(data, "f")
    assert str(caught.value) == message


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "1e999", '"nan"', '"inf"', '"1e999"'])
def test_nan_and_infinity_are_refused_anywhere(value: str) -> None:
    data = serial.dump(WHOLE).replace(b'"rx_dbm":-1.5', f'"rx_dbm":{value}'.encode())
    with pytest.raises(SnapshotError, match=r"damaged snapshot, at devices\.leaf01\.facts\.modules\..*rx_dbm; "):
        serial.load(data, "f")


def test_nan_and_infinity_are_not_written() -> None:
    lanes = {1: Lane(float("nan"), 2.5), 2: Lane(float("inf"))}
    line = Line("rs", lane_ber={1: float("inf"), 2: 1e-9})
    facts = Facts(modules={"swp1": Module(lanes=lanes)}, lines={"swp1": line})
    seen = Snapshot("f", 1.0, {"a": Observation("a", "nvue", facts)})
    parsed = Facts(
        modules={"swp1": Module(lanes={1: Lane(None, 2.5), 2: Lane()})}, lines={"swp1": Line("rs", lane_ber={2: 1e-9})}
    )
    assert serial.load(serial.dump(seen), "f").devices["a"].facts == parsed


def test_samples_without_a_time_are_refused() -> None:
    data = serial.dump(WHOLE).replace(b'"at_s":1.0', b'"at_s":-1e308')
    with pytest.raises(SnapshotError, match=r"is a damaged snapshot, at devices\.leaf01\.samples; take a new one"):
        serial.load(data, "f")


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_an_oversized_file_is_not_read_completely(
    pack: Callable[[bytes], bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = serial.dump(WHOLE)
    (tmp_path / "s").write_bytes(pack(data))
    monkeypatch.setattr(serial, "MOST_BYTES", len(data))
    assert serial.read(tmp_path / "s") == WHOLE
    monkeypatch.setattr(serial, "MOST_BYTES", len(data) - 1)
    with pytest.raises(SnapshotError, match=r"the limit for snapshots; name a file that netkit snapshot has written$"):
        serial.read(tmp_path / "s")


@given(st.binary(max_size=60), st.integers(0, 2000))
def test_a_damaged_snapshot_is_refused_or_read_without_additions(noise: bytes, at: int) -> None:
    data = serial.dump(WHOLE)
    at %= len(data)
    with suppress(SnapshotError):
        serial.load(data[:at] + noise + data[at + len(noise) :], "f")
