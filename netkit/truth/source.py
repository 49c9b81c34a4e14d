"""Nautobot and NetBox → records, through their own client libraries. Only reads. Answers are checked, not trusted."""

import importlib
from collections.abc import Iterable, Mapping
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from netkit.access.settings import TruthAccess
from netkit.errors import AccessError, Problem
from netkit.truth.record import DeviceRecord, PortEnd, TruthRecords

PAGE = 500
RETRIES = 2
LIBRARIES = {"nautobot": "pynautobot", "netbox": "pynetbox"}


class _TimedAdapter(HTTPAdapter):
    """Gives every request a time limit, and repeats reads that a busy or restarting server fails."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        retry = Retry(total=RETRIES, backoff_factor=0.2, status_forcelist=(502, 503, 504), allowed_methods=("GET",))
        super().__init__(max_retries=retry)

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        options["timeout"] = self._timeout_s
        return super().send(*arguments, **options)


def read(settings: TruthAccess, token: str) -> TruthRecords:
    """Read the devices and cabled interfaces of a source; AccessError if it does not answer as documented."""
    library = _library(settings.kind)
    try:
        client = library.api(settings.url, token=token)
        for scheme in ("http://", "https://"):
            client.http_session.mount(scheme, _TimedAdapter(settings.timeout_s))
        filters = {"location" if settings.kind == "nautobot" else "site": settings.site} if settings.site else {}
        depth = {"depth": 1} if settings.kind == "nautobot" else {}
        devices = _all(client.dcim.devices, {**filters, **depth})
        interfaces = _all(client.dcim.interfaces, {**filters, **depth})
    except (requests.RequestException, library.RequestError, library.ContentError) as error:
        raise _failed(settings, error) from None
    try:
        return _records(settings, devices, interfaces)
    except (KeyError, TypeError, ValueError, AttributeError):
        message = f"{settings.url} answers in an unknown form"
        remedy = f"check that truth.url is a {settings.kind}, of a release that docs/source-of-truth.md names"
        raise AccessError(Problem(message, remedy)) from None


def _library(kind: str) -> Any:
    try:
        return importlib.import_module(LIBRARIES[kind])
    except ImportError:
        remedy = "pip install 'netkit-fabric[truth]'"
        raise AccessError(Problem(f"{LIBRARIES[kind]} is not installed", remedy)) from None


def _all(endpoint: Any, filters: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = endpoint.filter(**filters, limit=PAGE) if filters else endpoint.all(limit=PAGE)
    return [dict(one) for one in found]


def _failed(settings: TruthAccess, error: Exception) -> AccessError:
    """Return the error without the text of an answer, which may repeat what was sent."""
    answer = getattr(error, "req", None)
    status = getattr(answer, "status_code", None)
    if status in {401, 403}:
        return AccessError(Problem(f"{settings.url} refuses the token ({status})", "check truth.token in access.yaml"))
    why = f"HTTP status {status}" if status else type(error).__name__
    return AccessError(
        Problem(f"{settings.url} cannot be read: {why}", "check truth.url, its certificate and the server")
    )


def _records(
    settings: TruthAccess, devices: Iterable[Mapping[str, Any]], interfaces: Iterable[Mapping[str, Any]]
) -> TruthRecords:
    names: dict[Any, str] = {}
    found: dict[str, DeviceRecord] = {}
    for one in devices:
        if one["name"] is None:
            continue  # a device without a name is not one of a fabric
        name, position = str(one["name"]), one["position"]
        if name in found:
            message = f"{settings.url} has two devices called {name}"
            raise AccessError(Problem(message, "set truth.site in access.yaml to read those of one site"))
        names[one["id"]] = name
        rack = str(one["rack"]["name"]) if one["rack"] else ""
        found[name] = DeviceRecord(name, str(one["serial"] or ""), rack, f"{float(position):g}" if position else "")
    return TruthRecords(found, _peers(list(interfaces), names))


def _peers(interfaces: Iterable[Mapping[str, Any]], names: Mapping[Any, str]) -> Mapping[PortEnd, PortEnd]:
    """Join interfaces by the cable they share: no further request is needed."""
    by_cable: dict[Any, list[PortEnd]] = {}
    for one in interfaces:
        device = names.get(one["device"]["id"])
        if one["cable"] and device is not None:
            by_cable.setdefault(one["cable"]["id"], []).append((device, str(one["name"])))
    peers: dict[PortEnd, PortEnd] = {}
    for ends in by_cable.values():
        if len(ends) == 2:
            peers |= {ends[0]: ends[1], ends[1]: ends[0]}
    return peers
