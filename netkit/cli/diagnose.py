"""`netkit diagnose`."""

import json
import sys
from pathlib import Path

from netkit.project.diagnosis import diagnosis
from netkit.report.table import columns
from netkit.terminal.output import check_format, write_whole


def run(folder: Path | None, *, out: Path | None, output: str) -> None:
    check_format(output)
    found = diagnosis(folder)
    if output == "json":
        text = json.dumps(found, indent=1, ensure_ascii=False) + "\n"
    else:
        tables = {title: [(f"  {name}", value) for name, value in section.items()] for title, section in found.items()}
        text = "\n".join(f"{title}\n{columns(rows)}" for title, rows in tables.items())
    if out is None:
        sys.stdout.write(text)
        return
    write_whole(out, text)
    sys.stdout.write(f"{out}: read it before you pass it on\n")
