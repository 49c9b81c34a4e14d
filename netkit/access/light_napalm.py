"""NAPALM and netmiko without the drivers of theirs that nobody asked for: loading them all takes longer than a deploy.

Nor is `invoke` loaded, which paramiko has only for `Match exec` in an ssh_config, nor what parses the screens of
devices whose drivers are not ours.
"""

import importlib
import logging
from typing import Any

from netkit.access.light_package import LOCK
from netkit.access.light_package import prepare as prepare_package

NETMIKO = "netmiko"


def prepare() -> None:
    """Let `napalm.base` and `netmiko.base_connection` be imported without the rest of their packages."""
    with LOCK:
        prepare_package("invoke")
        netmiko = prepare_package(NETMIKO)
        if netmiko is not None:
            _furnish(netmiko)
        if prepare_package("napalm") is not None:
            prepare_package("napalm.base")
            prepare_package("napalm.base.helpers")
            importlib.import_module("napalm.base.base")  # here, before several threads come for it


def _furnish(netmiko: Any) -> None:
    """Give the package what its own modules and `napalm.base` take from it while they are imported."""
    netmiko.log = logging.getLogger(NETMIKO)
    netmiko.log.addHandler(logging.NullHandler())
    netmiko.ConnectHandler = _connect_handler
    netmiko.NetMikoTimeoutException = importlib.import_module("netmiko.exceptions").NetmikoTimeoutException


def _connect_handler(*arguments: Any, **named: Any) -> Any:
    """Open a connection of any kind netmiko has."""
    made = importlib.import_module("netmiko.ssh_dispatcher").ConnectHandler
    return made(*arguments, **named)
