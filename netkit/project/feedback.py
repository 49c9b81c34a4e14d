"""What a project reports while it works: by default nothing but log records; the command line shows it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

Count = Callable[[], None]
LOGGER = logging.getLogger("netkit")


class Feedback:
    """Receives progress and notes; subclass it to show them."""

    def progress(self, title: str, total: int) -> AbstractContextManager[Count]:
        """Return a context in which the given function is called once for each thing done, from any thread."""
        del title, total
        return _uncounted()

    def note(self, line: str) -> None:
        """Take a line that is not part of any result."""
        LOGGER.info("%s", line)


@contextmanager
def _uncounted() -> Iterator[Count]:
    yield lambda: None


SILENT = Feedback()
