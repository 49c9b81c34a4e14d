"""Endpoint → the driver of its platform. Each driver is imported only when one of its devices is opened."""

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from netkit.access import light_napalm
from netkit.access.endpoint import Endpoint
from netkit.platforms.driver import Driver, Secrets
from netkit.platforms.view import Viewer

DRIVERS = {"nvue": "NvueDriver", "sonic": "SonicDriver", "eos": "EosDriver", "frr": "FrrDriver", "linux": "LinuxDriver"}


def connect(endpoint: Endpoint, secrets: Secrets, playbooks: Sequence[Path] = ()) -> Driver:
    """Return a driver for a device; nothing is sent before its `open`.

    `playbooks` are a user's own folders, whose files come before netkit's when a host is changed.
    """
    driver: Driver = _made(endpoint, secrets, playbooks)
    return driver


def viewer(endpoint: Endpoint, secrets: Secrets) -> Viewer:
    """Return what looks at a device; nothing is sent before its `open`."""
    made: Viewer = _made(endpoint, secrets)
    return made


def _made(endpoint: Endpoint, secrets: Secrets, playbooks: Sequence[Path] = ()) -> Any:
    light_napalm.prepare()
    module = importlib.import_module(f"netkit.platforms.{endpoint.platform}.driver")
    kind = getattr(module, DRIVERS[endpoint.platform])
    return kind(
        endpoint.host,
        endpoint.user,
        endpoint.password,
        timeout=endpoint.timeout_s,
        optional_args=arguments(endpoint, secrets) | ({"playbooks": tuple(playbooks)} if playbooks else {}),
    )


def arguments(endpoint: Endpoint, secrets: Secrets) -> dict[str, Any]:
    """Return what NAPALM calls the optional arguments of a driver."""
    files = {"key_file": endpoint.key_file, "known_hosts": endpoint.known_hosts, "ssh_config_file": endpoint.ssh_config}
    return {
        "device": endpoint.device,
        "port": endpoint.port,
        "transport": endpoint.transport,
        "certificate": endpoint.certificate,
        "secrets": secrets,
        **{name: str(file) for name, file in files.items() if file is not None},
    }
