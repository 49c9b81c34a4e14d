"""The source of a device's facts: its platform's own commands, SNMP, gNMI, or a NAPALM driver's getters."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from netkit.access import connect
from netkit.access.secrets import SecretStore
from netkit.access.settings import AccessSettings, Endpoint, FactSource, GnmiAccess, SnmpAccess
from netkit.design import Fabric
from netkit.design.fabric import Snmp
from netkit.errors import AccessError, Problem
from netkit.platforms import HOSTS
from netkit.platforms.gnmi.message import GnmiLogin, GnmiServer, Shield
from netkit.platforms.registry import ACCESS
from netkit.platforms.snmp import Community, Credential, User
from netkit.platforms.view import Viewer

REMEDY = "name a community or a user under snmp in access.yaml, or a user under services.snmp in fabric.yaml"


@dataclass(frozen=True, slots=True)
class Origin:
    """The source of facts for a platform."""

    source: FactSource = "native"
    snmp: SnmpAccess | None = None
    intended: tuple[Snmp, ...] = field(default=(), repr=False)
    """The SNMP users that the intent configures on every switch."""
    napalm: str = ""
    """The user's own NAPALM driver."""
    is_lab: bool = False
    gnmi: GnmiAccess | None = None


NATIVE = Origin()


def origin(
    fabric: Fabric, settings: AccessSettings, platform: str, chosen: FactSource | None, *, is_lab: bool = False
) -> Origin:
    """The source of a platform's facts: from the command line, else from access.yaml."""
    account = settings.platform(platform)
    source = chosen or account.facts or "native"
    if source == "native" or platform == HOSTS:
        return NATIVE
    snmp, gnmi = (None, None) if is_lab else (account.snmp, account.gnmi)
    return Origin(source, snmp, fabric.services.snmp, account.napalm or "", is_lab, gnmi)


def viewer(endpoint: Endpoint, secrets: SecretStore, origin: Origin) -> Viewer:
    """The viewer of a device; nothing is sent before its `open`."""
    if origin.source == "snmp":
        return _snmp(endpoint, secrets, origin)
    if origin.source == "gnmi":
        return _gnmi(endpoint, secrets, origin)
    if origin.source == "napalm":
        return _napalm(endpoint, secrets, origin)
    return connect.viewer(endpoint, secrets)


def _snmp(endpoint: Endpoint, secrets: SecretStore, origin: Origin) -> Viewer:
    driver = importlib.import_module("netkit.platforms.snmp.driver")
    place = importlib.import_module("netkit.platforms.snmp.transport").SnmpTarget(
        endpoint.host, endpoint.snmp_port, endpoint.timeout_s
    )
    found: Viewer = driver.SnmpViewer(endpoint.device, place, credentials(endpoint.device, secrets, origin))
    return found


def _gnmi(endpoint: Endpoint, secrets: SecretStore, origin: Origin) -> Viewer:
    driver = importlib.import_module("netkit.platforms.gnmi.driver")
    stated = origin.gnmi or GnmiAccess()
    if not endpoint.gnmi.port:
        remedy = "turn gNMI on in the configuration of the device, or use another source"
        raise AccessError(Problem(f"{endpoint.device}: gNMI is not available", remedy))
    shield: Shield = stated.shield
    if origin.is_lab and not endpoint.gnmi.certificate:
        shield = "none"  # the lab gives it no certificate if its configuration has none
    place = GnmiServer(endpoint.host, endpoint.gnmi.port, shield, endpoint.gnmi.certificate, endpoint.timeout_s)
    user = stated.user or endpoint.user
    what = f"the password of {user} for gNMI"
    password = secrets.read(stated.password, what, user) if stated.password else endpoint.gnmi.password
    login = GnmiLogin(user, password or endpoint.password, is_basic=ACCESS[endpoint.platform].is_gnmi_login_basic)
    found: Viewer = driver.GnmiViewer(endpoint.device, place, login, stated.paths)
    return found


def credentials(device: str, secrets: SecretStore, origin: Origin) -> tuple[Credential, ...]:
    """The credentials for a device's SNMP agent. AccessError if there are none."""
    if origin.snmp is not None and (origin.snmp.community or origin.snmp.user):
        return (_configured(origin.snmp, secrets),)
    if not origin.intended:
        raise AccessError(Problem(f"{device}: no SNMP community or user is configured", REMEDY))
    return tuple(user for snmp in origin.intended for user in _intended(snmp, secrets, is_lab=origin.is_lab))


def _configured(snmp: SnmpAccess, secrets: SecretStore) -> Credential:
    if snmp.community is not None:
        return Community(secrets.read(snmp.community, "the SNMP community", "community"))
    user = snmp.user or ""
    auth = secrets.read(snmp.auth, f"the secret of the SNMP user {user}", user) if snmp.auth else ""
    priv = secrets.read(snmp.priv, f"the privacy secret of the SNMP user {user}", user) if snmp.priv else ""
    return User(user, auth, snmp.auth_protocol, priv, snmp.priv_protocol)


def _intended(snmp: Snmp, secrets: SecretStore, *, is_lab: bool) -> Iterator[Credential]:
    """Yield the user that netkit deploys. A lab that was only booted has references in place of secrets."""
    fetch = secrets.known if is_lab else secrets
    auth, priv = fetch(snmp.auth_secret), fetch(snmp.priv_secret)
    if auth and priv:
        yield User(snmp.user, auth, priv=priv)
    if is_lab:
        yield User(snmp.user, f"@secret:{snmp.auth_secret}@", priv=f"@secret:{snmp.priv_secret}@")


def _napalm(endpoint: Endpoint, secrets: SecretStore, origin: Origin) -> Viewer:
    connect.prepare()
    driver = importlib.import_module("netkit.platforms.napalm.driver")
    own = _own_driver(endpoint, secrets, origin.napalm) if origin.napalm else connect.viewer(endpoint, secrets)
    found: Viewer = driver.GetterViewer(endpoint.device, own)
    return found


def _own_driver(endpoint: Endpoint, secrets: SecretStore, name: str) -> object:
    """A driver that the user has installed."""
    napalm = importlib.import_module("napalm")
    try:
        kind = napalm.get_network_driver(name)
    except Exception as error:  # importing a driver runs any code
        what = f"{endpoint.device}: the NAPALM driver {name} cannot be loaded: {type(error).__name__}"
        raise AccessError(Problem(what, f"pip install napalm-{name}")) from None
    arguments = connect.arguments(endpoint, secrets)
    options = {key: arguments[key] for key in ("port", "key_file", "ssh_config_file") if key in arguments}
    return kind(endpoint.host, endpoint.user, endpoint.password, timeout=endpoint.timeout_s, optional_args=options)
