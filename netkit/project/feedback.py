"""What a project reports while it works: log records by default; the command line shows it."""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

Count = Callable[[], None]
LOGGER = logging.getLogger("netkit")


class Feedback:
    """Receives progress and notes; subclass it to show them."""

    def progress(self, title: str, total: int) -> AbstractContextManager[Count]:
        """Return a context; the function it yields is called once for each item done, from any thread."""
        del title, total
        return nullcontext(lambda: None)

    def note(self, line: str) -> None:
        """Report a line that is not part of any result."""
        LOGGER.info("%s", line)


SILENT = Feedback()
