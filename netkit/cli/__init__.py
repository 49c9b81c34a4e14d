"""The command line."""

import importlib
import sys

INTERRUPTED = 130


def main() -> None:
    """Run netkit; an interrupt that comes while it is still being imported ends it quietly too."""
    try:
        importlib.import_module("netkit.cli.app").main()
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
