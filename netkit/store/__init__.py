"""Stage: what runs of checks saw → history, for deltas, trends and reports. A SQLite file, or PostgreSQL by URL.

Only `open_store` loads the database library; whoever does not use a store does not pay for it.
"""

from netkit.store.record import CheckRun, Counts, Source, run_of
from netkit.store.state import CheckState

__all__ = ["CheckRun", "CheckState", "Counts", "Source", "run_of"]
