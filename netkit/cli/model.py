"""`netkit model`."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from netkit.errors import HardwareError, OutputError, Problem, UsageError
from netkit.hardware import read_switch
from netkit.platforms import PLATFORMS, registry


def import_folder(folder: Path, name: str, hwsku: str, out: Path) -> None:
    """Write a model file from a device folder of an image, or from what a switch printed."""
    importers = {platform: found for platform in PLATFORMS if (found := registry.optional(platform, "model_import"))}
    importer = next((found for found in importers.values() if (folder / found.PLATFORM).is_file()), None)
    if importer is None:
        *names, last = sorted(found.PLATFORM for found in importers.values())
        what = f"{folder} has no {', '.join(names)} or {last}"
        raise UsageError(
            Problem(what, "name the device folder of a SONiC image, or a folder with saved output of a switch")
        )
    if hasattr(importer, "OF_HWSKU"):
        chosen = _hwsku(folder, importer.PORTS, hwsku)
        text = importer.model_file(_image(folder, chosen, importer), name or chosen, folder.resolve().name, chosen)
    else:
        if hwsku:
            raise UsageError(Problem(f"{folder} is not from a SONiC image, so it has no hwsku", "leave out --hwsku"))
        text = importer.model_file(_texts(folder / one for one in importer.FILES), name)
    name = yaml.safe_load(text)["name"]
    if Path(name).name != name:
        raise UsageError(
            Problem(f"{name!r} is not a name of a model", "--name without slashes; --out names the folder")
        )
    file = out / f"{name}.yaml"
    if file.exists():
        raise OutputError(Problem("exists", "remove it, or choose another --name", file=str(file)))
    try:
        out.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OutputError(
            Problem(f"cannot be written: {error.strerror}", "choose another --out", file=str(file))
        ) from None
    model = read_switch(file)
    splits = ", ".join(split.mode for split in model.splits)
    sys.stdout.write(f"{file}: {model.cages} cages, {splits}\n")
    sys.stdout.writelines(f"{line.removeprefix('# ')}\n" for line in text.splitlines()[1:] if line.startswith("#"))


def _hwsku(folder: Path, ports: str, hwsku: str) -> str:
    there = sorted(file.parent.name for file in folder.glob(f"*/{ports}"))
    chosen = hwsku or (there[0] if len(there) == 1 else "")
    if chosen not in there:
        what = f"{folder} has no hwsku {hwsku!r}" if hwsku else f"{folder} has {len(there)} hwskus"
        raise UsageError(Problem(what, f"choose one with --hwsku: {', '.join(there)}" if there else "name its parent"))
    return chosen


def _image(folder: Path, hwsku: str, importer: Any) -> dict[str, str]:
    """Read a device folder; some have a file once for all their hwskus."""
    own = {one: folder / hwsku / one for one in importer.OF_HWSKU}
    wanted = [folder / importer.PLATFORM]
    wanted += (path if path.exists() or path.is_symlink() else folder / one for one, path in own.items())
    for link in (one for one in wanted if one.is_symlink() and not one.exists()):
        raise UsageError(Problem(f"{link} links to {link.readlink()}, which is not here", "copy the folder with cp -L"))
    return _texts(wanted)


def _texts(files: Iterable[Path]) -> dict[str, str]:
    """Read those files that exist."""
    found: dict[str, str] = {}
    for file in files:
        try:
            if file.is_file():
                found[file.name] = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise HardwareError(Problem(f"cannot be read: {error}", "copy it again", file=str(file))) from None
    return found
