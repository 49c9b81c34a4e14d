"""The history of check runs, for deltas, trends and reports: a SQLite file, or PostgreSQL by URL.

Only `open_store` loads the database library, so commands without a store do not pay for it.
"""

from netkit.store.record import CheckRun, Counts, Source, run_of
from netkit.store.state import CheckState

__all__ = ["CheckRun", "CheckState", "Counts", "Source", "run_of"]
