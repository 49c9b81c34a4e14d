"""Model files from switch output: the shipped models, in the format of Cumulus Linux and EOS, and imported again."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from netkit.errors import HardwareError
from netkit.hardware import Catalog, SwitchModel, read_switch
from netkit.platforms.eos import model_import as eos
from netkit.platforms.nvue import model_import as nvue
from tests.command import run

CATALOG = Catalog()
MODELS = [CATALOG.switch(name) for name in CATALOG.names("switches")]
CUMULUS = [model for model in MODELS if "nvue" in model.platforms and model.cage_form]
ARISTA = [model for model in MODELS if "eos" in model.platforms]
Files = dict[str, Any]
IMPORTERS: dict[str, Any] = {"nvue": nvue, "eos": eos}


def cumulus(model: SwitchModel, mode: str) -> Files:
    """Output of Cumulus Linux on this model when the odd cages are split in this mode."""
    split = model.split(mode)
    assert split
    whole = max(one.speed_gbps for one in model.splits)
    ports = {
        f"swp{cage}s{port}" if cage % 2 else f"swp{cage}": {"link": {"speed": f"{split.speed_gbps}G"}}
        for cage in range(1, model.cages + 1)
        for port in range(split.ports if cage % 2 else 1)
    }
    other = f"swp{model.cages + 1}"
    return {
        nvue.PLATFORM: {
            "asic-model": model.asic,
            "manufacturer": model.vendor,
            "port-layout": f"{model.cages} x {whole}G-{model.cage_form} & 1 x 25G-SFP28",
            "product-name": model.name,
        },
        nvue.INTERFACES: {**ports, other: {"link": {}}, "eth0": {"type": "eth"}, "lo": {}, "vlan10": {"type": "svi"}},
    }


def arista(model: SwitchModel) -> Files:
    """Output of EOS on this model."""
    speeds: dict[str, set[int]] = {
        f"Ethernet{cage}/{lane}": set() for cage in range(1, model.cages + 1) for lane in range(1, 9)
    }
    for split in model.splits:
        for cage in split.cages:
            for port in range(split.ports):
                speeds[f"Ethernet{cage}/{1 + port * model.lanes_per_cage // split.ports}"].add(split.speed_gbps)
    modes = {
        name: {"modes": [{"link": {"auto": True}}, *({"link": {"speed": f"{one}Gbps"}} for one in sorted(of))]}
        for name, of in speeds.items()
    }
    slots = {str(slot): {"mfgName": "Not Present"} for slot in range(1, model.cages + 3)}
    return {
        eos.PLATFORM: {"interfaces": {**modes, "Ethernet65": {"modes": []}, "Management1": {}}},
        eos.INVENTORY: {"xcvrSlots": slots},
        eos.VERSION: {"mfgName": model.vendor, "modelName": model.name, "version": "4.35.1F"},
    }


def model_of(platform: str, files: Files, tmp_path: Path) -> SwitchModel:
    text = IMPORTERS[platform].model_file({name: json.dumps(content) for name, content in files.items()}, "")
    file = tmp_path / "switch.yaml"
    file.write_text(text, encoding="utf-8")
    return read_switch(file)


def rows(model: SwitchModel) -> set[tuple[str, int, tuple[int, ...]]]:
    return {(split.mode, split.lanes_per_port, split.cages) for split in model.splits}


@pytest.mark.parametrize("shipped", CUMULUS, ids=lambda model: model.name)
def test_cumulus_linux_output_gives_the_cages_and_the_breakouts_in_use(tmp_path: Path, shipped: SwitchModel) -> None:
    split = next(split for split in shipped.splits if split.ports > 1)
    model = model_of("nvue", cumulus(shipped, split.mode), tmp_path)
    same = ("name", "vendor", "asic", "cages", "cage_form", "lanes_per_cage")
    assert [getattr(model, key) for key in same] == [getattr(shipped, key) for key in same]
    fastest = max(one.speed_gbps for one in shipped.splits)
    assert rows(model) == {
        (f"1x{fastest}G", shipped.lanes_per_cage, tuple(range(1, shipped.cages + 1))),
        (split.mode, split.lanes_per_port, tuple(range(1, shipped.cages + 1, 2))),
    }


@pytest.mark.parametrize("shipped", ARISTA, ids=lambda model: model.name)
def test_eos_output_gives_the_cages_and_their_breakouts(tmp_path: Path, shipped: SwitchModel) -> None:
    model = model_of("eos", arista(shipped), tmp_path)
    same = ("name", "vendor", "cages", "lanes_per_cage")
    assert [getattr(model, key) for key in same] == [getattr(shipped, key) for key in same]
    fastest = max(split.speed_gbps for split in shipped.splits)
    assert rows(model) == {row for row in rows(shipped) if row[0] == f"1x{fastest}G" or not row[0].startswith("1x")}


def _change(path: tuple[str, ...], value: Any) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        at = files
        for key in path[:-1]:
            at = at[key]
        if value is None:
            del at[path[-1]]
        else:
            at[path[-1]] = value

    return change


HARDWARE = (eos.PLATFORM, "interfaces")
REFUSED: dict[str, tuple[str, Callable[[Files], None]]] = {
    "nvue, no interfaces": ("nvue", _change((nvue.INTERFACES,), None)),
    "nvue, a list": ("nvue", _change((nvue.PLATFORM,), ["swp1"])),
    "nvue, an old release": ("nvue", _change((nvue.PLATFORM, "port-layout"), None)),
    "nvue, a layout of other words": ("nvue", _change((nvue.PLATFORM, "port-layout"), "many ports")),
    "nvue, an unknown form": ("nvue", _change((nvue.PLATFORM, "port-layout"), "64 x 800G-XFP")),
    "nvue, no product": ("nvue", _change((nvue.PLATFORM, "product-name"), None)),
    "nvue, another switch": ("nvue", _change((nvue.PLATFORM, "port-layout"), "32 x 400G-QSFPDD")),
    "nvue, three ports": ("nvue", _change((nvue.INTERFACES, "swp1s2"), {"link": {}})),
    "nvue, no first port": ("nvue", _change((nvue.INTERFACES, "swp1s0"), None)),
    "eos, no version": ("eos", _change((eos.VERSION,), None)),
    "eos, no name": ("eos", _change((eos.VERSION, "modelName"), None)),
    "eos, an error as text": ("eos", _change((eos.PLATFORM,), {"errors": ["Invalid input"]})),
    "eos, line cards": ("eos", _change((*HARDWARE, "Ethernet3/1/1"), {"modes": []})),
    "eos, no cages": ("eos", _change(HARDWARE, {"Ethernet1": {"modes": []}})),
    "eos, a cage too far": ("eos", _change((*HARDWARE, "Ethernet99/1"), {"modes": []})),
    "eos, lanes that differ": ("eos", _change((*HARDWARE, "Ethernet1/5"), None)),
    "eos, another switch": ("eos", _change((eos.INVENTORY, "xcvrSlots"), {"1": {}})),
    "eos, no speeds": ("eos", _change(HARDWARE, {f"Ethernet1/{lane}": {"modes": []} for lane in range(1, 9)})),
}


def test_output_that_does_not_describe_a_switch_is_refused(tmp_path: Path) -> None:
    """The texts are in `model-printed.yaml`: each names the file and what to do."""
    found = {}
    for case, (platform, change) in REFUSED.items():
        files = cumulus(CATALOG.switch("SN5600"), "2x400G") if platform == "nvue" else arista(ARISTA[0])
        change(files)
        with pytest.raises(HardwareError) as refusal:
            model_of(platform, files, tmp_path)
        found[case] = str(refusal.value)
    assert found == yaml.safe_load((Path(__file__).parent / "model-printed.yaml").read_text(encoding="utf-8"))


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=9),
    lambda of: st.lists(of) | st.dictionaries(st.sampled_from(["swp1", "Ethernet1/1", "modes", "link"]), of),
)


@given(st.sampled_from([nvue.PLATFORM, nvue.INTERFACES, eos.PLATFORM, eos.INVENTORY]), JSON)
def test_any_other_json_is_refused(file: str, content: Any) -> None:
    platform = "nvue" if file in nvue.FILES else "eos"
    files = cumulus(CATALOG.switch("SN5600"), "2x400G") if platform == "nvue" else arista(ARISTA[0])
    with pytest.raises(HardwareError):
        IMPORTERS[platform].model_file(
            {name: json.dumps(content if name == file else text) for name, text in files.items()}, "S9"
        )


@pytest.mark.parametrize("platform", IMPORTERS)
def test_the_command_writes_a_model_that_a_fabric_renders_with(tmp_path: Path, platform: str) -> None:
    shipped = CATALOG.switch("SN5600") if platform == "nvue" else ARISTA[0]
    files = cumulus(shipped, "2x400G") if platform == "nvue" else arista(shipped)
    if platform == "nvue":
        files[nvue.INTERFACES] |= {
            f"swp{cage}s{port}": {"link": {"speed": "400G"}} for cage in range(2, 65, 2) for port in (0, 1)
        }
        files[nvue.INTERFACES] = {
            name: row
            for name, row in files[nvue.INTERFACES].items()
            if not re.fullmatch(r"swp([2468]|\d[02468])", name)
        }
    printed, fabric = tmp_path / "printed", tmp_path / "fabric"
    printed.mkdir()
    for name, content in files.items():
        (printed / name).write_text(json.dumps(content), encoding="utf-8")
    assert run("init", fabric, "--model", shipped.name, "--platform", platform).returncode == 0
    written = run("model", "import", printed, "--name", "S9", "--out", fabric / "models" / "switches")
    assert written.returncode == 0, written.stderr
    assert written.stdout.startswith(f"{fabric}/models/switches/S9.yaml: 64 cages, 1x800G, 2x400G")
    intent = fabric / "fabric.yaml"
    headroom = "\nlossless: {headroom: {400: {xoff_bytes: 300000}}}\n"
    text = intent.read_text(encoding="utf-8").replace(shipped.name, "S9")
    intent.write_text(text + headroom, encoding="utf-8")
    shown = run("render", "--fabric", fabric, "--out", tmp_path / "out")
    assert shown.returncode == 0, shown.stderr
    hwsku = run("model", "import", printed, "--hwsku", "Some")
    assert hwsku.stderr == f"error: {printed} is not from a SONiC image, so it has no hwsku; leave out --hwsku\n"
    slash = run("model", "import", printed, "--name", "a/b")
    assert (slash.returncode, slash.stderr) == (
        3,
        "error: 'a/b' is not a name of a model; --name without slashes; --out names the folder\n",
    )
