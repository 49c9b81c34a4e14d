"""`netkit worker`: carries out the jobs of a site."""

import sys
import time
from pathlib import Path

from netkit.fleet import settings as fleet_settings
from netkit.fleet.credentials import Credentials
from netkit.fleet.execute import SiteExecutor
from netkit.fleet.nonce_journal import NonceJournal
from netkit.fleet.worker import Worker, stop_on_signals
from netkit.project.runs import state_folder
from netkit.terminal.text import say


def run(site: str, folder: Path, *, access: Path | None, state: Path | None, lab: str) -> None:
    """Serve jobs until SIGTERM or Ctrl-C."""
    settings = fleet_settings.load(folder)
    keys = settings.site(site).keys
    credentials = Credentials.load(folder, settings.broker)
    credentials.expect(keys, f"the site {site}")
    place = (state or state_folder() / "worker" / site).absolute()
    execute = SiteExecutor(settings, site, place, (access or folder / "access").absolute(), credentials, lab)
    with NonceJournal(place / "jobs.sqlite", time.time()) as journal:
        worker = Worker(settings, site, credentials, journal, execute, report=_report)
        stop_on_signals(worker)
        worker.run()


def _report(line: str) -> None:
    say(sys.stderr, f"{line}\n")
