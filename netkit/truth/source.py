"""Nautobot and NetBox, through their own client libraries. Answers are checked, not trusted."""

import importlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from netkit.access.settings import TruthAccess
from netkit.design.fabric import Fabric
from netkit.errors import AccessError, Problem
from netkit.truth.dialect import DIALECTS, netbox_slug
from netkit.truth.export import TruthExport, TruthRefusedError
from netkit.truth.wanted import Wanted, wanted

PAGE = 500
RETRIES, STATUS_RETRIES = 2, 6
TOO_MANY = 429
LONGEST_WAIT_S = 60
"""Before a request is repeated, whatever the server asks for."""
READS_PER_WRITE = 10
"""How much longer than a read a request that writes a hundred objects may take."""
BAD_REQUEST = 400
LONGEST_REFUSAL = 200
LIBRARIES = {"nautobot": "pynautobot", "netbox": "pynetbox"}


class _TruthRetry(Retry):
    """Repeats reads that a busy or restarting server fails, and every request that it takes no more of for now."""

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        return (status_code == TOO_MANY and self.total != 0) or super().is_retry(method, status_code, has_retry_after)

    def get_retry_after(self, response: Any) -> float | None:
        asked = super().get_retry_after(response)
        return None if asked is None else min(asked, LONGEST_WAIT_S)


class _TimedAdapter(HTTPAdapter):
    """Gives every request a time limit and repetitions, and sends the token to no other server."""

    def __init__(self, settings: TruthAccess) -> None:
        self._settings, self._origin = settings, _origin(settings.url)
        retry = _TruthRetry(
            total=STATUS_RETRIES,
            connect=RETRIES,
            read=RETRIES,
            backoff_factor=0.2,
            status_forcelist=(502, 503, 504),
            allowed_methods=("GET",),
            raise_on_status=False,
        )
        super().__init__(max_retries=retry)

    def send(self, *arguments: Any, **options: Any) -> requests.Response:
        request = arguments[0]
        if _origin(request.url) != self._origin:  # of a next page, or a redirect
            there = "://".join(_origin(request.url)[:2])
            message = f"{self._settings.url} refers to {there}, which does not get the token"
            raise AccessError(Problem(message, "set truth.url as the server names itself, or mend its proxy's headers"))
        options["timeout"] = self._settings.timeout_s * (1 if request.method == "GET" else READS_PER_WRITE)
        return super().send(*arguments, **options)


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    try:
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:  # out of range
        port = None
    return parts.scheme, parts.hostname or "", port


class TruthApi:
    """The API of a source, through the client library of its makers."""

    def __init__(self, settings: TruthAccess, token: str) -> None:
        self.settings, self._token = settings, token
        self._library = _library(settings.kind)
        self._errors = (requests.RequestException, self._library.RequestError, self._library.ContentError)
        with self._explained():
            self._client = self._library.api(settings.url, token=token)
            for scheme in ("http://", "https://"):
                self._client.http_session.mount(scheme, _TimedAdapter(settings))

    def find(self, endpoint: str, filters: Mapping[str, object]) -> list[dict[str, Any]]:
        """Read all objects that match, page by page."""
        with self._explained():
            place = self._endpoint(endpoint)
            found = place.filter(**filters, limit=PAGE) if filters else place.all(limit=PAGE)
            return [dict(one) for one in found]

    def create(self, endpoint: str, rows: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Create all of them or none."""
        with self._explained():
            return [dict(one) for one in self._endpoint(endpoint).create(list(rows))]

    def update(self, endpoint: str, rows: Sequence[Mapping[str, object]]) -> list[dict[str, Any]]:
        """Change all of them or none."""
        with self._explained():
            return [dict(one) for one in self._endpoint(endpoint).update(list(rows))]

    def _endpoint(self, name: str) -> Any:
        app, _, endpoint = name.partition(".")
        return getattr(getattr(self._client, app), endpoint)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise TruthRefusedError for values that are not accepted, AccessError for all else."""
        try:
            yield
        except self._errors as error:
            answer = getattr(error, "req", None)
            if getattr(answer, "status_code", None) == BAD_REQUEST:
                text = _plain(str(getattr(error, "error", ""))).replace(self._token, "…")
                raise TruthRefusedError(text[:LONGEST_REFUSAL]) from None
            raise _failed(self.settings, error) from None


@contextmanager
def checked(settings: TruthAccess) -> Iterator[None]:
    """Raise AccessError for an answer that is refused, or lacks what is documented."""
    try:
        yield
    except TruthRefusedError as error:
        message = f"{settings.url} refuses to answer: {error}"
        raise AccessError(Problem(message, "check truth.site, and the release of the server")) from None
    except (KeyError, TypeError, ValueError, AttributeError):
        message = f"{settings.url} answers in an unknown form"
        remedy = f"check that truth.url is a {settings.kind}, of a release in docs/source-of-truth.md"
        raise AccessError(Problem(message, remedy)) from None


def _plain(answer: str) -> str:
    """The words of a refusal, which are a tree of lists by field."""
    try:
        tree = json.loads(answer)
    except ValueError:
        return answer
    if isinstance(tree, list):
        tree = next((one for one in tree if one), "")
    if isinstance(tree, dict):
        return "; ".join(
            f"{key}: {', '.join(map(str, [value] if isinstance(value, str) else value))}" for key, value in tree.items()
        )
    return str(tree)


def _library(kind: str) -> Any:
    try:
        return importlib.import_module(LIBRARIES[kind])
    except ImportError:
        remedy = "pip install 'netkit-fabric[truth]'"
        raise AccessError(Problem(f"{LIBRARIES[kind]} is not installed", remedy)) from None


def _failed(settings: TruthAccess, error: Exception) -> AccessError:
    """The error without the text of an answer, which may repeat what was sent."""
    answer = getattr(error, "req", None)
    status = getattr(answer, "status_code", None)
    if status in {401, 403}:
        return AccessError(Problem(f"{settings.url} refuses the token ({status})", "check truth.token in access.yaml"))
    why = f"HTTP status {status}" if status else type(error).__name__
    return AccessError(
        Problem(f"{settings.url} cannot be read: {why}", "check truth.url, its certificate and the server")
    )


def exported(api: TruthApi, fabric: Fabric, *, writes: bool) -> TruthExport:
    """Write a fabric into a source; without `writes`, find what would be written."""
    site = site_of(api, fabric)
    return export_of(api, site, wanted(fabric, site), writes=writes)


def site_of(api: TruthApi, fabric: Fabric) -> str:
    """What the source calls the site of a fabric."""
    site = api.settings.site or fabric.site
    return netbox_slug(site) if api.settings.kind == "netbox" else site


def export_of(api: TruthApi, site: str, objects: Iterable[Wanted], *, writes: bool) -> TruthExport:
    """Write some objects into a source; without `writes`, find what would be written."""
    export = TruthExport(api, DIALECTS[api.settings.kind](site), writes)
    with checked(api.settings):
        export.run(objects)
    return export
