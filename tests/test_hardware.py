"""Every shipped switch and host model in a small fabric, on each NOS that the model runs."""

from pathlib import Path
from typing import Any

import pytest

from netkit import design
from netkit.design import Fabric
from netkit.errors import DesignError
from netkit.hardware import Catalog, Media, Split, SwitchModel
from netkit.intent import Intent
from netkit.platforms import PLATFORMS
from netkit.render import Engine, render
from tests.intents import values

CATALOG = Catalog()
VERSIONS = {"nvue": "5.16.1", "sonic": "202511", "eos": "4.35.1F", "frr": "8.4.4"}
LEFT_TO_THE_USER = {
    ("SN5610", "sonic"): "hwsku",
    ("AS9817-64D", "sonic"): "buffer_pools",
    ("AS9817-64O", "sonic"): "buffer_pools",
}
"""No source was found: netkit asks for it."""
HOST = """
name: any-host
vendor: null
sources: {test: a test}
gpus: {value: 2, source: test}
nic: {value: any, source: test}
speed_gbps: {value: SPEED, source: test}
rails:
  - {pci: "0000:18:00.0", netdev: enp24s0np0, rdma: mlx5_0, gpu: 0, source: test}
  - {pci: "0000:19:00.0", netdev: enp25s0np0, rdma: mlx5_1, gpu: 1, source: test}
"""


def media_for(model: SwitchModel, split: Split) -> Media | None:
    """Return media that fill a cage of a model, split in this way."""
    return next(
        (
            media
            for media in CATALOG.media().values()
            if (media.speed_gbps, media.ports_per_module) == (split.speed_gbps, split.ports)
            and (not media.forms or not model.cage_form or model.cage_form in media.forms)
        ),
        None,
    )


def small(tmp_path: Path, name: str, platform: str, split: Split, media: str) -> dict[str, Any]:
    """Return the small intent with every switch of a model, split in one way, and hosts of that speed."""
    (tmp_path / "hosts").mkdir(parents=True)
    host = HOST.replace("SPEED", str(split.speed_gbps))
    (tmp_path / "hosts" / "any-host.yaml").write_text(host, encoding="utf-8")
    tier = {"model": name, "platform": platform, "version": VERSIONS[platform]}
    cable = {"media": media, "length_m": 2}
    return values(
        {
            "purpose": "lab" if platform == "frr" else "production",
            "switches": {
                "leaf": {**tier, "host_breakout": split.mode, "uplink_breakout": split.mode},
                "spine": {**tier, "breakout": split.mode},
            },
            "hosts": {"model": "any-host"},
            "cables": {"host": cable, "spine": cable},
        }
    )


def built(tmp_path: Path, given: dict[str, Any]) -> Fabric:
    return design.build(Intent.model_validate(given), Catalog([tmp_path]))


def platforms(model: SwitchModel) -> list[str]:
    return [name for name in VERSIONS if name in model.platforms or PLATFORMS[name].runs_on_any_model]


CASES = [(name, platform) for name in CATALOG.names("switches") for platform in platforms(CATALOG.switch(name))]


@pytest.mark.parametrize(("name", "platform"), CASES)
def test_a_fabric_of_each_model_is_rendered(tmp_path: Path, name: str, platform: str) -> None:
    model = CATALOG.switch(name)
    ways = [(split, media) for split in model.splits if (media := media_for(model, split))]
    assert ways
    asked = LEFT_TO_THE_USER.get((name, platform))
    for split, media in ways:
        folder = tmp_path / split.mode
        given = small(folder, name, platform, split, media.name)
        if asked:
            with pytest.raises(DesignError) as refused:
                built(folder, given)
            said = f"no source states {asked} of {name} on {PLATFORMS[platform].title} {VERSIONS[platform]}"
            assert {problem.message for problem in refused.value.problems} == {said}
            continue
        fabric = built(folder, given)
        leaf = fabric.switch("leaf01")
        (device,) = render(fabric, [leaf], Engine())
        text = "\n".join(device.files.values())
        assert all(port.name in text for port in (*leaf.host_ports, *leaf.fabric_ports))
