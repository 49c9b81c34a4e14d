"""The interfaces that netplan's entries and networkd's units are for: both may match a MAC or a PCI path instead."""

import re
from collections.abc import Mapping

from netkit.platforms.config import Config

NETPLAN = "netplan.yaml"
GLOB = frozenset("*?[!")
MAC = re.compile(r"(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}")
PCI = r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
IN_PATH = re.compile(rf"pci-({PCI})", re.IGNORECASE)
UNIT_KEYS = {
    ("[Match]", "Name"): "name",
    ("[Match]", "MACAddress"): "mac",
    ("[Match]", "PermanentMACAddress"): "mac",
    ("[Match]", "Path"): "pci",
    ("[Link]", "Name"): "name",
    ("[Link]", "MTUBytes"): "mtu",
    ("[Link]", "Description"): "note",
    ("[Link]", "Alias"): "note",
    ("[Network]", "Description"): "note",
}
Settings = dict[str, str]


def netplan_names(config: Config) -> dict[str, str]:
    """The interface of each entry of `ethernets`: what it sets or matches exactly, else its identifier."""
    found: dict[str, str] = {}
    for path, value in config.items():
        if path[:3] == (NETPLAN, "network", "ethernets") and len(path) > 4:
            found.setdefault(path[3], path[3])
            is_unset = found[path[3]] == path[3]
            if path[4:] == ("set-name",) or (path[4:] == ("match", "name") and is_unset):
                found[path[3]] = value
    return found


def unit_settings(config: Config) -> dict[str, Settings]:
    """The name, MAC, PCI address, MTU and description in each unit of networkd and udev.

    A .network file without a name gets that of the .link file for the same MAC or PCI address.
    """
    found: dict[str, Settings] = {}
    for path, value in config.items():
        if path[0].endswith((".network", ".link")):
            settings = found.setdefault(path[0], {})
            if len(path) == 3 and (key := UNIT_KEYS.get((path[1], path[2]))) and (text := _plain(key, value)):
                settings.setdefault(key, text)
    links = [settings for file, settings in found.items() if file.endswith(".link") and "name" in settings]
    for settings in found.values():
        if "name" not in settings and (own := next((link for link in links if _is_same(link, settings)), None)):
            settings["name"] = own["name"]
    return found


def mac(text: str) -> str:
    """A MAC in its usual form; empty for several of them, and for anything else."""
    text = text.strip().lower()
    return text.replace("-", ":") if MAC.fullmatch(text) else ""


def _plain(key: str, value: str) -> str:
    if key == "pci":
        match = IN_PATH.search(value)
        return match[1].lower() if match else ""
    return mac(value) if key == "mac" else value


def _is_same(link: Mapping[str, str], settings: Mapping[str, str]) -> bool:
    return any(key in settings and settings[key] == link.get(key) for key in ("mac", "pci"))
