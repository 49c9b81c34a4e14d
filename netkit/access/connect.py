"""Drivers of devices, and lazy imports of large packages: most of their modules are never needed."""

import importlib
import logging
import sys
import threading
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from netkit.access.settings import Endpoint
from netkit.platforms import registry
from netkit.platforms.driver import Driver, Secrets
from netkit.platforms.view import Viewer

LOCK = threading.RLock()


class _Package(ModuleType):
    """A package or module that is not executed until an attribute other than its submodules is used."""

    _is_loading = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if "__path__" in self.__dict__ and find_spec(f"{self.__name__}.{name}") is not None:
            return import_module(f"{self.__name__}.{name}")
        with LOCK:
            if self.__class__ is _Package:
                self._load(name)
        return getattr(self, name)

    def _load(self, name: str) -> None:
        if self._is_loading or self.__spec__ is None or self.__spec__.loader is None:
            raise AttributeError(name)
        self._is_loading = True
        self.__spec__.loader.exec_module(self)
        self.__class__ = ModuleType  # type: ignore[assignment]  # loaded: an ordinary module from here on


def prepare_package(name: str) -> ModuleType | None:
    """Register a module for lazy loading; None if it is loaded already or not installed."""
    with LOCK:
        spec = None if name in sys.modules else find_spec(name)
        if spec is None:
            return None  # an import will report a missing package
        package = module_from_spec(spec)
        package.__class__ = _Package
        sys.modules[name] = package
        above, _, own = name.rpartition(".")
        if above:
            setattr(sys.modules[above], own, package)
        return package


NETMIKO = "netmiko"


def prepare() -> None:
    """Make `napalm.base` and `netmiko.base_connection` importable without the rest of their packages."""
    with LOCK:
        prepare_package("invoke")
        netmiko: Any = prepare_package(NETMIKO)
        if netmiko is not None:
            # Attributes that its own modules and `napalm.base` use while they are imported.
            netmiko.log = logging.getLogger(NETMIKO)
            netmiko.log.addHandler(logging.NullHandler())
            netmiko.ConnectHandler = _connect_handler
            netmiko.NetMikoTimeoutException = importlib.import_module("netmiko.exceptions").NetmikoTimeoutException
        if prepare_package("napalm") is not None:
            prepare_package("napalm.base")
            prepare_package("napalm.base.helpers")
            importlib.import_module("napalm.base.base")  # now, before several threads import it


def load(platforms: Iterable[str]) -> None:
    """Import the drivers of platforms now, for processes to inherit."""
    prepare()
    for name in platforms:
        registry.part(name, "driver")


def _connect_handler(*arguments: Any, **named: Any) -> Any:
    """Open a connection of any type that netmiko supports."""
    made = importlib.import_module("netmiko.ssh_dispatcher").ConnectHandler
    return made(*arguments, **named)


def connect(endpoint: Endpoint, secrets: Secrets, playbooks: Sequence[Path] = ()) -> Driver:
    """The driver of a device; nothing is sent before its `open`.

    `playbooks` are the user's own folders, which take precedence over netkit's when a host is changed.
    """
    driver: Driver = _made(endpoint, secrets, playbooks)
    return driver


def viewer(endpoint: Endpoint, secrets: Secrets) -> Viewer:
    """The viewer of a device; nothing is sent before its `open`."""
    made: Viewer = _made(endpoint, secrets)
    return made


def source(endpoint: Endpoint) -> str:
    """The local address of connections to a device, if known; else empty."""
    prepare()
    found: str = importlib.import_module("netkit.platforms.ssh").source_address(endpoint.host, endpoint.ssh_config)
    return found


def _made(endpoint: Endpoint, secrets: Secrets, playbooks: Sequence[Path] = ()) -> Any:
    prepare()
    return registry.part(endpoint.platform, "driver").DRIVER(
        endpoint.host,
        endpoint.user,
        endpoint.password,
        timeout=endpoint.timeout_s,
        optional_args=arguments(endpoint, secrets) | ({"playbooks": tuple(playbooks)} if playbooks else {}),
    )


def arguments(endpoint: Endpoint, secrets: Secrets) -> dict[str, Any]:
    """The optional arguments of the NAPALM driver."""
    files = {"key_file": endpoint.key_file, "known_hosts": endpoint.known_hosts, "ssh_config_file": endpoint.ssh_config}
    return {
        "device": endpoint.device,
        "port": endpoint.port,
        "transport": endpoint.transport,
        "certificate": endpoint.certificate,
        "secrets": secrets,
        **{name: str(file) for name, file in files.items() if file is not None},
    }
