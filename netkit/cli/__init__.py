"""The command line."""

import importlib
import sys

from netkit.terminal.ctrl_c import INTERRUPTED, CtrlC


def main() -> None:
    """Run netkit; an interrupt that comes while it is still being imported ends it quietly too."""
    with CtrlC() as ctrl_c:
        try:
            _run(ctrl_c)
        except (KeyboardInterrupt, Exception) as error:
            if not ctrl_c.is_heard and not isinstance(error, KeyboardInterrupt):
                raise
            sys.stderr.write("interrupted\n")
            sys.exit(INTERRUPTED)


def _run(ctrl_c: CtrlC) -> None:
    try:
        importlib.import_module("netkit.cli.app").main()
    except Exception as error:  # whatever it is, the user has no use for a traceback
        if ctrl_c.is_heard:
            raise
        sys.exit(importlib.import_module("netkit.cli.defect").tell(error))
