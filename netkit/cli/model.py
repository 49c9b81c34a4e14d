"""`netkit model`."""

import sys
from pathlib import Path

from netkit.errors import HardwareError, OutputError, Problem, UsageError
from netkit.hardware import read_switch
from netkit.platforms import PLATFORMS, registry


def import_folder(folder: Path, name: str, hwsku: str, out: Path) -> None:
    """Write a model file from a device folder of an image."""
    importers = {platform: found for platform in PLATFORMS if (found := registry.optional(platform, "model_import"))}
    platform = next((one for one, found in importers.items() if (folder / found.PLATFORM).is_file()), None)
    if platform is None:
        names = " or ".join(found.PLATFORM for found in importers.values())
        raise UsageError(Problem(f"{folder} has no {names}", "name the device folder of the switch in its image"))
    importer = importers[platform]
    there = sorted(file.parent.name for file in folder.glob(f"*/{importer.PORTS}"))
    chosen = hwsku or (there[0] if len(there) == 1 else "")
    if chosen not in there:
        what = f"{folder} has no hwsku {hwsku!r}" if hwsku else f"{folder} has {len(there)} hwskus"
        raise UsageError(Problem(what, f"choose one with --hwsku: {', '.join(there)}" if there else "name its parent"))
    name = name or chosen
    if Path(name).name != name:
        raise UsageError(
            Problem(f"{name!r} is not a name of a model", "--name without slashes; --out names the folder")
        )
    file = out / f"{name}.yaml"
    if file.exists():
        raise OutputError(Problem("exists", "remove it, or choose another --name", file=str(file)))
    own = {one: folder / chosen / one for one in importer.OF_HWSKU}
    wanted = [folder / importer.PLATFORM]  # some folders have a file once for all their hwskus
    wanted += (path if path.exists() or path.is_symlink() else folder / one for one, path in own.items())
    for link in (one for one in wanted if one.is_symlink() and not one.exists()):
        raise UsageError(Problem(f"{link} links to {link.readlink()}, which is not here", "copy the folder with cp -L"))
    try:
        texts = {one.name: one.read_text(encoding="utf-8") for one in wanted if one.is_file()}
    except (OSError, UnicodeDecodeError) as error:
        raise HardwareError(Problem(f"cannot be read: {error}", "copy it again", file=str(folder))) from None
    text = importer.model_file(texts, name, folder.resolve().name, chosen)
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
