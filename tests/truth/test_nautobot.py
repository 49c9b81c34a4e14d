"""netkit truth diff against a real Nautobot, filled through its own API."""

import importlib
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from netkit.access import settings
from netkit.design import Fabric
from netkit.project.project import Project
from netkit.truth.difference import of_fabric
from tests.command import ROOT, Done, run
from tests.truth.nautobot import TOKEN, lacks, nautobot

pynautobot: Any = importlib.import_module("pynautobot")
pytestmark = [pytest.mark.whole, pytest.mark.skipif(bool(lacks()), reason=lacks())]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    made = tmp_path_factory.mktemp("nautobot") / "fabric"
    shutil.copytree(ROOT / "inventory/brownfield", made)
    with nautobot() as url:
        text = f"truth: {{kind: nautobot, url: '{url}', token: {{env: TRUTH_TOKEN}}}}\n"
        (made / "access.yaml").write_text(text, encoding="utf-8")
        fill(pynautobot.api(url, token=TOKEN), Project.open(made).fabric)
        yield made


def fill(client: Any, fabric: Fabric) -> None:
    """Write the devices and cables of a fabric, in bulk."""
    active, connected = (client.extras.statuses.get(name=name).id for name in ("Active", "Connected"))
    kinds = ["dcim.device", "dcim.rack"]
    site_type = client.dcim.location_types.create(name="Site", content_types=kinds).id
    site = client.dcim.locations.create(name="dc1", location_type=site_type, status=active).id
    role = client.extras.roles.create(name="fabric", content_types=["dcim.device"]).id
    maker = client.dcim.manufacturers.create(name="any").id
    model = client.dcim.device_types.create(manufacturer=maker, model="any", u_height=1).id
    records, peers = of_fabric(fabric).devices.values(), of_fabric(fabric).peers
    names = sorted({one.rack for one in records} - {""})
    made = client.dcim.racks.create([{"name": name, "location": site, "status": active} for name in names])
    racks = {one.name: one.id for one in made}
    common = {"location": site, "status": active, "role": role, "device_type": model}
    places: dict[str, dict[str, object]] = {"": {}} | {
        name: {"rack": one, "face": "front"} for name, one in racks.items()
    }
    devices = client.dcim.devices.create(
        [
            {"name": one.name, "serial": one.serial, **common, **places[one.rack], "position": one.rack_unit or None}
            for one in records
        ]
    )
    ids = {one.name: one.id for one in devices}
    ends = sorted(peers)
    ports = client.dcim.interfaces.create(
        [{"device": ids[device], "name": port, "type": "other", "status": active} for device, port in ends]
    )
    by_end = {end: one.id for end, one in zip(ends, ports, strict=True)}
    kind = "dcim.interface"
    client.dcim.cables.create(
        [
            {
                "termination_a_type": kind,
                "termination_a_id": by_end[end],
                "termination_b_type": kind,
                "termination_b_id": by_end[peer],
                "status": connected,
            }
            for end, peer in peers.items()
            if end < peer
        ]
    )


def diff(folder: Path, token: str = TOKEN) -> Done:
    return run("truth", "diff", "--fabric", folder, "--format", "json", TRUTH_TOKEN=token)


def test_a_filled_nautobot_agrees_and_a_change_is_a_row(folder: Path) -> None:
    done = diff(folder)
    assert (done.returncode, json.loads(done.stdout), done.stderr) == (0, [], "")
    access = settings.load(folder).truth
    assert access is not None
    client = pynautobot.api(access.url, token=TOKEN)
    cable = client.dcim.cables.all()[0]
    first, other = (client.dcim.interfaces.get(str(end)) for end in (cable.termination_a_id, cable.termination_b_id))
    ends = sorted((one.device.name, one.name) for one in (first, other))
    assert cable.delete()
    done = diff(folder)
    assert done.returncode == 1, done.stderr
    rows = [tuple(row.values()) for row in json.loads(done.stdout)]
    (near, far) = ends
    assert rows == [(*near, "cable", "", ":".join(far)), (*far, "cable", "", ":".join(near))]


def test_a_wrong_token_is_refused_and_not_shown(folder: Path) -> None:
    done = diff(folder, token="0" * 40)
    assert done.returncode == 4
    assert "refuses the token (403)" in done.stderr
    assert "0" * 40 not in done.stderr
