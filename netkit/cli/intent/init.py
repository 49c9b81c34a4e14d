"""`netkit init`."""

import sys
from pathlib import Path

from netkit import design
from netkit.design import Fabric
from netkit.errors import NetkitError, Problem, UsageError
from netkit.hardware import Catalog
from netkit.intent import Intent, document, scaffold
from netkit.intent.scaffold import Size


def run(folder: Path, *, leaves: int, spines: int, hosts: int, units: int, platform: str, model: str) -> None:
    """Prove that a fabric of the size is valid, and only then write its folder."""
    catalog = Catalog()
    size = Size(leaves=leaves, spines=spines, hosts_per_unit=hosts, units=units, platform=platform, model=model)
    text = scaffold.text(folder, size, catalog)
    fabric = _designed(text, catalog)
    file = scaffold.write(folder, text)
    sys.stdout.write(f"{file}: {len(fabric.switches)} switches, {len(fabric.hosts)} hosts\n")
    sys.stdout.write(f"next: netkit design --fabric {folder}, then netkit render --fabric {folder} --out out\n")


def _designed(text: str, catalog: Catalog) -> Fabric:
    try:
        return design.build(Intent.model_validate(document.parse(text, "fabric.yaml").value), catalog)
    except NetkitError as error:
        remedy = "change --units, --hosts-per-unit, --spines, --leaves, --platform or --model"
        messages = dict.fromkeys(problem.message for problem in error.problems)
        raise UsageError(Problem(f"no such fabric can be built: {message}", remedy) for message in messages) from None
