"""What a switch runs before anybody configures it, from `factory.yaml` and the words of its release."""

from pathlib import Path

from netkit.lab.personalities.nvue.schema import BREAK, CumulusSwitch, Issue, NvueSchemaNode, checked, merged
from netkit.lab.personalities.nvue.tree import Tree, load

SOURCE = Path(__file__).with_name("factory.yaml")


def factory(known: NvueSchemaNode, chassis: CumulusSwitch) -> Tree:
    """Return the factory's configuration of a release."""
    items = load(SOURCE.read_text(encoding="utf-8"))
    given = items[0]["set"] if isinstance(items, list) else {}
    on: Tree = {"state": "enabled"} if chassis.version >= BREAK else {"enable": "on"}
    dhcp: Tree = (
        {"ipv4": {"dhcp-client": {"state": "enabled", "set-hostname": "enabled"}}, "vrf": "mgmt"}
        if chassis.version >= BREAK
        else {"ip": {"address": {"dhcp": {}}, "vrf": "mgmt"}}
    )
    words: Tree = {
        "interface": {"eth0": dhcp},
        "system": {"api": on, "config": {"auto-save": on}, "ssh-server": on},
    }
    issues: list[Issue] = []
    tree = checked(known, given, issues)
    if issues or not isinstance(tree, dict):
        raise ValueError(f"{SOURCE.name}: {'; '.join(issue.message for issue in issues)}")
    return merged(known, tree, words)
