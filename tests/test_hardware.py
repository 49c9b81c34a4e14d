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
from netkit.platforms.linux.view_nic import nearest_gpu
from netkit.render import Engine, render
from tests.intents import on_platform, values

CATALOG = Catalog()
VERSIONS = {"nvue": "5.16.1", "sonic": "202511", "eos": "4.35.1F", "frr": "8.4.4"}
LEFT_TO_THE_USER = {
    ("SN5610", "sonic"): "hwsku",
    ("AS9817-64D", "sonic"): "buffer_pools",
    ("AS9817-64O", "sonic"): "buffer_pools",
}
"""Without a source, the value has to be in the intent."""
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
    """Media that fill a cage of a model with this breakout."""
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
    """The small intent with every switch of a model, one breakout, and hosts of that speed."""
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


LEAF_BREAKOUTS = {400: ("2x400G", "800G-2xDR4"), 800: ("1x800G", "800G-DR8")}


@pytest.mark.parametrize("name", CATALOG.names("hosts"))
@pytest.mark.parametrize("platform", ["nvue", "sonic", "eos"])
def test_a_fabric_with_each_host_model_is_rendered(name: str, platform: str) -> None:
    model = CATALOG.host(name)
    assert len(model.rail_gpus) % model.gpus == 0
    split, media = LEAF_BREAKOUTS[model.speed_gbps]
    tier = {**on_platform(platform, VERSIONS[platform])["switches"]["leaf"], "host_breakout": split}
    rails = len(model.rail_gpus)
    pci = None if model.rails else [f"0000:{16 + rail:02x}:00.0" for rail in range(rails)]
    cables = {"host": {"media": media, "length_m": 20}}
    hosts = {"model": name, **({"pci": pci} if pci else {})}
    given = on_platform(
        platform,
        VERSIONS[platform],
        {"rails": rails, "switches": {"leaf": tier}, "hosts": hosts, "cables": cables},
    )
    fabric = design.build(Intent.model_validate(given), CATALOG)
    host = fabric.hosts[0]
    per_gpu = rails // model.gpus
    assert [nearest_gpu(host, nic.rail) for nic in host.nics] == [rail // per_gpu for rail in range(rails)]
    files = {device.device: device.files for device in render(fabric, [host, fabric.switch("leaf01")], Engine())}
    assert f"rail{rails - 1}=" in files[host.name]["netkit-nic-qos"]


@pytest.mark.parametrize("name", [name for name in CATALOG.names("hosts") if not CATALOG.host(name).rails])
def test_a_host_without_a_pci_map_asks_for_it(name: str) -> None:
    with pytest.raises(DesignError, match=f"no source states the PCI addresses of {name}'s rail NICs"):
        design.build(Intent.model_validate(values({"hosts": {"model": name}})), CATALOG)
