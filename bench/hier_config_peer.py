"""hier_config comparing saved EOS configurations with rendered ones. Runs in the peer's virtual environment."""

import argparse
import sys
from pathlib import Path

from hier_config import (  # type: ignore[import-not-found]  # it lives in a virtual environment of its own
    Platform,
    WorkflowRemediation,
    get_hconfig,
)


def main() -> int:
    """Compare the devices of two folders; return 1 if one differs."""
    parser = argparse.ArgumentParser(description="Compare with hier_config.")
    parser.add_argument("--running", type=Path, required=True)
    parser.add_argument("--intended", type=Path, required=True)
    parser.add_argument("--devices", type=int, required=True, help="how many of them; 0 starts and ends")
    given = parser.parse_args()
    folders = sorted(folder for folder in given.running.iterdir() if folder.is_dir())
    differ = 0
    for folder in folders[: given.devices]:
        texts = (place.joinpath(folder.name, "eos.cfg").read_text() for place in (given.running, given.intended))
        running, intended = (get_hconfig(Platform.ARISTA_EOS, text) for text in texts)
        differ += bool(list(WorkflowRemediation(running, intended).remediation_config.all_children()))
    print(f"{differ} of {min(given.devices, len(folders))} devices differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
