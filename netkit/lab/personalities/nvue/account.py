"""The account a switch comes with: there for as long as the configuration names it, and deleted with its entry."""

from netkit.lab.node import Node
from netkit.lab.personalities.nvue.tree import Tree, child

LOGIN = "cumulus"
PASSWD, DELETED = "/etc/passwd", "passwd.deleted"


def exists(tree: Tree) -> bool:
    """Whether a configuration keeps the account."""
    return LOGIN in child(tree, "system", "aaa", "user")


def keep(node: Node, tree: Tree) -> None:
    """Make the account of a node what a configuration says; connections that are open stay."""
    file, deleted = node.file(PASSWD), node.saved / DELETED
    if not file.is_file():
        return
    lines = file.read_text(encoding="utf-8").splitlines()
    own = [line for line in lines if line.startswith(f"{LOGIN}:")]
    if own and not exists(tree):
        deleted.write_text("\n".join(own) + "\n", encoding="utf-8")
        file.write_text("\n".join(line for line in lines if line not in own) + "\n", encoding="utf-8")
    elif not own and exists(tree) and deleted.is_file():
        # After root: all accounts of a node are root, which is who `ls` is to name.
        kept = deleted.read_text(encoding="utf-8").splitlines()
        file.write_text("\n".join([*lines[:1], *kept, *lines[1:]]) + "\n", encoding="utf-8")
