"""A small fabric on disk with a snapshot: some checks pass, some fail, some cannot be judged."""

from dataclasses import replace
from pathlib import Path

from netkit import design
from netkit.design import Fabric
from netkit.facts import Absent, Facts, Observation, Sample, Snapshot, serial
from netkit.facts.device import System
from netkit.facts.host import BgpSession
from netkit.hardware import Catalog
from netkit.intent import Intent
from tests import intents
from tests.lab.running import write_fabric

VALUES = intents.on_platform("nvue", "5.13.0", {"units": [{"unit": 1, "hosts": 2}]})


def checked(folder: Path) -> tuple[Path, Path]:
    """The folder of the fabric, and its snapshot."""
    fabric = write_fabric(folder / "fabric", VALUES)
    file = folder / "snapshot.json"
    file.write_bytes(serial.dump(snapshot(design.build(Intent.model_validate(VALUES), Catalog()))))
    return fabric, file


def snapshot(built: Fabric) -> Snapshot:
    """A snapshot: leaf01 is healthy, leaf02 has a session down, spine01 reports nothing, the rest is unreachable."""
    well = facts(built, "leaf01")
    sessions = well.sessions if isinstance(well.sessions, dict) else {}
    down = {port: replace(one, is_established=False, state="Idle") for port, one in list(sessions.items())[:1]}
    seen = {
        "leaf01": Observation("leaf01", "nvue", well, samples()),
        "leaf02": Observation("leaf02", "nvue", replace(well, sessions={**sessions, **down})),
        "spine01": Observation("spine01", "nvue", Facts(sessions=Absent("bgpd does not run"))),
    }
    missed = {name: Observation(name, "nvue", failure="connection refused") for name in built.names if name not in seen}
    return Snapshot(built.name, 1_763_800_000.0, {**missed, **seen})


def facts(built: Fabric, name: str) -> Facts:
    ports = built.switch(name).fabric_ports
    return Facts(
        system=System(name, "5.13.0"),
        sessions={port.name: BgpSession(True, "Established", port.peer_asn, 3, is_bfd_up=True) for port in ports},
        counters=samples()[-1].counters,
    )


def samples() -> tuple[Sample, ...]:
    """Two samples ten seconds apart."""
    return tuple(Sample(at_s, {"rx_errors": {"swp1s0": count}}) for at_s, count in ((1.0, 5), (11.0, 25)))
