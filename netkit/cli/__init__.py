"""The command line."""

import importlib
import sys

from netkit.terminal.ctrl_c import INTERRUPTED, CtrlC


def main() -> None:
    """Run netkit; also ends quietly on an interrupt during its imports."""
    with CtrlC() as ctrl_c:
        try:
            try:
                importlib.import_module("netkit.cli.app").main()
            except Exception as error:  # a traceback is of no use to the user
                if ctrl_c.is_heard:
                    raise
                sys.exit(importlib.import_module("netkit.cli.defect").report(error))
        except (KeyboardInterrupt, Exception) as error:
            if not ctrl_c.is_heard and not isinstance(error, KeyboardInterrupt):
                raise
            sys.stderr.write("interrupted\n")
            sys.exit(INTERRUPTED)
