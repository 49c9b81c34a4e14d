"""The endpoints of all devices of a fabric, or of a lab of it."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from netkit.access.certificates import known_certificates
from netkit.access.secrets import read
from netkit.access.settings import AccessSettings, Endpoint, GnmiAccess, GnmiEndpoint, PlatformAccess, SecretSource
from netkit.design.fabric import Fabric, Host, Switch
from netkit.errors import AccessError, Problem
from netkit.platforms import HOSTS
from netkit.platforms.registry import ACCESS
from netkit.private import PASSWORD

KNOWN_HOSTS = "known_hosts"
PERSONALITIES: Mapping[str, str] = {"linux-host": HOSTS}
DEFAULT_TIMEOUT_S = 30.0
SNMP_PORT = 161


def endpoints(fabric: Fabric, settings: AccessSettings, folder: Path) -> Mapping[str, Endpoint]:
    """The endpoints of a fabric; files in the settings are relative to `folder`."""
    devices: tuple[Switch | Host, ...] = (*fabric.switches, *fabric.hosts)
    rows = ((one.name, one.platform, _address(one, settings), _intended_user(fabric, one)) for one in devices)
    return listed_endpoints(rows, settings, folder)


def listed_endpoints(
    devices: Iterable[tuple[str, str, str, str]], settings: AccessSettings, folder: Path
) -> Mapping[str, Endpoint]:
    """The endpoints of devices: (name, platform, address, user unless the settings name one)."""
    known_hosts = _path(folder, settings.known_hosts or KNOWN_HOSTS)
    ssh_config = _path(folder, settings.ssh_config) if settings.ssh_config else None
    certificates = known_certificates(known_hosts)
    accounts: dict[str, PlatformAccess] = {}
    passwords = _Passwords()
    found = {}
    for name, platform, host, intended_user in devices:
        if platform not in accounts:
            accounts[platform] = settings.platform(platform)
        account = accounts[platform]
        transport = _transport(account, platform)
        port = account.port or ACCESS[platform].ports[transport]
        user = account.user or intended_user or ACCESS[platform].user
        found[name] = Endpoint(
            device=name,
            platform=platform,
            host=host,
            port=port,
            user=user,
            transport=transport,
            password=passwords.of(account, user),
            key_file=_path(folder, account.key_file) if account.key_file else None,
            known_hosts=known_hosts,
            ssh_config=ssh_config,
            certificate=certificates.get((host, port), ""),
            timeout_s=account.timeout_s or DEFAULT_TIMEOUT_S,
            snmp_port=account.snmp.port if account.snmp else SNMP_PORT,
            gnmi=_gnmi(account, platform, host, certificates),
        )
    return found


def lab_endpoints(
    record: Mapping[str, Any], folder: Path, settings: AccessSettings | None = None
) -> Mapping[str, Endpoint]:
    """The endpoints of a lab from its own record.

    Of the settings only transports and timeouts apply: a lab has its own keys, accounts and passwords.
    """
    try:
        password = (folder / "password").read_text(encoding="utf-8").strip()
    except OSError:
        password = ""
    settings = settings or AccessSettings()
    found = {}
    for name, entry in (record.get("devices") or {}).items():
        platform = PERSONALITIES.get(entry["personality"], entry["personality"])
        account = settings.platform(platform)
        transport = _transport(account, platform)
        found[name] = Endpoint(
            device=name,
            platform=platform,
            host=entry["address"],
            port=entry["port"] if transport == "ssh" else entry["https_port"],
            user=entry["login"],
            transport=transport,
            password="" if transport == "ssh" else password,
            key_file=folder / "key",
            known_hosts=folder / KNOWN_HOSTS,
            certificate=entry.get("certificate", ""),
            timeout_s=account.timeout_s or DEFAULT_TIMEOUT_S,
            snmp_port=entry.get("snmp_port", SNMP_PORT),
            gnmi=GnmiEndpoint(entry["gnmi_port"], entry.get("gnmi_certificate", ""), password=password)
            if entry.get("gnmi_port")
            else GnmiEndpoint(),
        )
    return found


def _gnmi(
    account: PlatformAccess, platform: str, host: str, certificates: Mapping[tuple[str, int], str]
) -> GnmiEndpoint:
    stated = account.gnmi or GnmiAccess()
    port = stated.port or ACCESS[platform].gnmi_port
    is_wanted = port != 0 and stated.shield == "pinned" and (account.gnmi is not None or account.facts == "gnmi")
    return GnmiEndpoint(port, certificates.get((host, port), ""), is_wanted)


def endpoint_of(found: Mapping[str, Endpoint], device: str, where: str = "") -> Endpoint:
    """The endpoint of a device; AccessError if it has none, or the lab `where` lacks it."""
    if device not in found:
        what = f"the lab {where} has no such device" if where else "no address is known"
        raise AccessError(Problem(f"{device}: {what}", "netkit lab down, or give it a management address"))
    return found[device]


class _Passwords:
    """Reads each source once, however many devices share it."""

    def __init__(self) -> None:
        self._known: dict[tuple[SecretSource, str], str] = {}

    def of(self, account: PlatformAccess, user: str) -> str:
        """The password of an account; empty if it has none."""
        source = account.password
        if source is None:
            return os.environ.get(PASSWORD, "")
        if (source, user) not in self._known:
            self._known[source, user] = read(source, f"the password of {user}", user)
        return self._known[source, user]


def _transport(account: PlatformAccess, platform: str) -> str:
    return account.transport or next(iter(ACCESS[platform].ports))


def _address(device: Switch | Host, settings: AccessSettings) -> str:
    if device.name in settings.addresses:
        return settings.addresses[device.name]
    if isinstance(device, Switch) and device.management is not None:
        return device.management.address
    return (device.management if isinstance(device, Host) else "") or device.name


def _intended_user(fabric: Fabric, device: Switch | Host) -> str:
    """The login that the intent gives every switch."""
    logins = fabric.services.login if isinstance(device, Switch) else ()
    return next((login.user for login in logins if login.password_hash_secret), "")


def _path(folder: Path, given: str) -> Path:
    """Resolve a file in the settings relative to the fabric's folder."""
    return folder / Path(given).expanduser()
