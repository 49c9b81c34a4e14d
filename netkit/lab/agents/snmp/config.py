"""What snmpd is told: who may ask, and what the switch says of itself."""

import re
from collections.abc import Iterator

from netkit.design.fabric import Switch
from netkit.lab.node import RefusedError
from netkit.lab.state import SnmpState

SHORTEST_SECRET = 8
MODULES = (
    "snmpEngine",
    "snmpMPDStats",
    "snmp_mib",
    "sysORTable",
    "system_mib",
    "target_counters",
    "usmConf",
    "usmStats",
    "usmUser",
    "vacm_conf",
    "vacm_context",
    "vacm_vars",
)
"""What snmpd answers by itself; all else comes from the lab."""
OBJECT_IDS = {"nvue": ".1.3.6.1.4.1.40310", "eos": ".1.3.6.1.4.1.30065.1"}
LINUX_OBJECT_ID = ".1.3.6.1.4.1.8072.3.2.10"
DESCRIPTIONS = {
    "nvue": "Cumulus-Linux {version} (Linux Kernel, {model})",
    "sonic": "SONiC Software Version: SONiC.{version} - HwSku: {model} - Distribution: Debian",
    "eos": "Arista Networks EOS version {version} running on an Arista Networks {model}",
    "frr": "Linux with FRRouting {version} on {model}",
}


def config(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> str:
    """Return snmpd.conf; the users' secrets are not in it."""
    return "".join(f"{line}\n" for line in _lines(snmp, hostname, switch, listen, agentx))


def secrets(snmp: SnmpState, hostname: str, boots: int) -> str:
    """Return what snmpd's private folder holds at its start: the engine, how often it began before, and the users."""
    lines = [f"engineBoots {boots}", f"oldEngineID {engine_id(hostname)}"]
    lines += [
        f"createUser {_quoted(user.name)} SHA {_secret(user.name, user.auth_secret)}"
        f" AES {_secret(user.name, user.priv_secret)}"
        for user in snmp.users
    ]
    return "".join(f"{line}\n" for line in lines)


def engine_id(hostname: str) -> str:
    """Return the engine of a switch: net-snmp's form for text, always the same for a name."""
    return "0x80001f8804" + hostname.encode()[:27].hex()


def description(switch: Switch) -> str:
    """Return what a switch calls its system, towards managers and neighbours."""
    text = DESCRIPTIONS.get(switch.platform, DESCRIPTIONS["frr"])
    return text.format(version=switch.version, model=switch.model.name)


def _lines(snmp: SnmpState, hostname: str, switch: Switch, listen: str, agentx: str) -> Iterator[str]:
    yield f"agentAddress udp:{listen}"
    yield f"exactEngineID {engine_id(hostname)}"
    yield "master agentx"
    yield f"agentXSocket {agentx}"
    yield "agentXTimeout 60"
    yield f"sysName {_text(hostname)}"
    yield f"sysDescr {description(switch)}"
    yield f"sysObjectID {OBJECT_IDS.get(switch.platform, LINUX_OBJECT_ID)}"
    # Always said, so that nothing of the machine's shows.
    yield f"sysLocation {_text(snmp.location) or 'unknown'}"
    yield f"sysContact {_text(snmp.contact) or 'unknown'}"
    yield "sysServices 6"
    for user in snmp.users:
        yield f"rouser {_quoted(user.name)} priv"
    for community in snmp.communities:
        yield f"rocommunity {_quoted(community)}"


def _secret(user: str, secret: str) -> str:
    if len(secret) < SHORTEST_SECRET:
        raise RefusedError(f"the secrets of SNMP user {user} need at least {SHORTEST_SECRET} characters")
    return _quoted(secret)


def _quoted(word: str) -> str:
    if not word or not word.isprintable():
        raise RefusedError("an SNMP user, community or secret is empty or has characters that cannot be printed")
    return '"' + re.sub(r'(["\\])', r"\\\1", word) + '"'


def _text(value: str) -> str:
    """Return text on one line; snmpd takes all to the end of the line."""
    return " ".join(value.split())
