"""`netkit fleet`: set up a fleet, and show its state; `netkit worker`: carry out the jobs of a site."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

from netkit.errors import AccessError, Problem, UsageError
from netkit.fleet import installation
from netkit.fleet import settings as fleet_settings
from netkit.fleet.coordinator import site_statuses
from netkit.fleet.dispatch import Dispatch
from netkit.fleet.execute import SiteExecutor
from netkit.fleet.installation import NewFleet
from netkit.fleet.nonce_journal import NonceJournal
from netkit.fleet.signing import Credentials
from netkit.fleet.status import SiteStatus, WorkerStatus, metrics
from netkit.fleet.worker import Worker, stop_on_signals
from netkit.intent import slots
from netkit.project.runs import state_folder
from netkit.report.plan_view import counted
from netkit.report.table import columns
from netkit.serve.fleet_state import FleetState
from netkit.terminal.output import check_format, say, write_json, write_whole


def init(folder: Path, sites: tuple[str, ...], *, host: str, port: int, url: str, branches: tuple[str, ...]) -> None:
    """Write a new fleet, or new sites of a known one."""
    wanted = _sites(sites)
    if (folder / fleet_settings.FILE).exists():
        if host or url or branches:
            what = (
                f"{folder / fleet_settings.FILE} exists; --broker, --repository and --branch are only for a new fleet"
            )
            raise UsageError(Problem(what, "omit them to add sites, or name another folder"))
        done = installation.add(folder, wanted)
    else:
        if not host or not url:
            what = "a new fleet needs --broker and --repository"
            raise UsageError(Problem(what, f"give both, or name the folder with {fleet_settings.FILE}"))
        done = installation.begin(folder, NewFleet(host, url, wanted, branches or ("main",), port))
    sys.stdout.write(f"{folder}: {counted(len(done.files), 'file')} written, for {', '.join(wanted)}\n")
    if done.to_add:
        sys.stdout.write(f"add to `sites` in {folder / fleet_settings.FILE}:\n{done.to_add}")
    sys.stdout.write('next: docs/fleet.md, "Install"\n')


def _sites(given: tuple[str, ...]) -> dict[str, dict[str, tuple[int, ...]]]:
    found: dict[str, dict[str, tuple[int, ...]]] = {}
    for text in given:
        name, separator, place = text.partition("=")
        path, colon, units = place.partition(":")
        if not separator or not name or not path or (colon and not units):
            raise UsageError(Problem(f"--site {text!r} names no fabric", "write it as tokyo=inventory/tokyo"))
        try:
            found.setdefault(name, {})[path] = slots.parse(units) if units else ()
        except ValueError as error:
            what, _, remedy = str(error).replace("{given}", repr(units)).partition("; ")
            raise UsageError(Problem(f"--site {text!r}: {what}", remedy)) from None
    return found


def state(fleet: Dispatch) -> FleetState:
    """Ask the sites of a fleet what they do."""
    found = tuple(site_statuses(fleet.settings, fleet.credentials))
    return FleetState(time.time(), [_entry(site) for site in found], metrics(found))


def show_status(folder: Path, output: str, *, file: Path | None) -> None:
    """Print the state of all sites; AccessError if none can be asked."""
    check_format(output)
    fleet = Dispatch.of(folder)
    found = tuple(site_statuses(fleet.settings, fleet.credentials))
    if file is not None:
        write_whole(file, metrics(found))
    if output == "json":
        write_json([_entry(site) for site in found])
    else:
        sys.stdout.write(columns((row for site in found for row in _rows(site)), HEAD))
    host = fleet.settings.broker.host
    if failures := sorted({site.failure for site in found if site.failure}):
        raise AccessError(Problem(f"the broker {host}: {failure}", "see its log") for failure in failures)


HEAD = ("site", "waiting", "worker", "version", "done", "refused", "now")


def _rows(site: SiteStatus) -> Iterator[tuple[str, ...]]:
    if site.failure:
        yield (site.name, "?", "-", "-", "-", "-", f"not known: {site.failure}")
        return
    if not site.workers:
        now = "no worker is connected" if not site.receivers else "connected, but has not reported yet"
        yield (site.name, str(site.waiting), "-", "-", "-", "-", now)
    for number, one in enumerate(site.workers):
        head = (site.name, str(site.waiting)) if number == 0 else ("", "")
        yield (*head, one.worker, one.version, str(one.done), str(one.refused), _now(one))


def _now(one: WorkerStatus) -> str:
    seen = f", seen {ago} s ago" if (ago := int(time.time()) - one.at_s) > 30 else ""
    if not one.verb:
        return f"idle{seen}"
    left = max(0, one.deadline_s - int(time.time()))
    return f"{one.verb} of {one.fabric} {one.shard}".rstrip() + f", {left} s to its deadline{seen}"


def _entry(site: SiteStatus) -> dict[str, object]:
    return {
        "site": site.name,
        "failure": site.failure,
        "waiting": site.waiting,
        "receivers": site.receivers,
        "workers": [one.model_dump(exclude={"format", "site"}) for one in site.workers],
    }


def work(site: str, folder: Path, *, access: Path | None, state: Path | None, lab: str) -> None:
    """Serve jobs until SIGTERM or Ctrl-C."""
    settings = fleet_settings.load(folder)
    keys = settings.site(site).keys
    credentials = Credentials.load(folder, settings.broker)
    credentials.expect(keys, f"the site {site}")
    place = (state or state_folder() / "worker" / site).absolute()
    execute = SiteExecutor(settings, site, place, (access or folder / "access").absolute(), credentials, lab)
    with NonceJournal(place / "jobs.sqlite", time.time()) as journal:
        worker = Worker(settings, site, credentials, journal, execute, _report, execute.prepare)
        stop_on_signals(worker)
        worker.run()


def _report(line: str) -> None:
    say(sys.stderr, f"{line}\n")
