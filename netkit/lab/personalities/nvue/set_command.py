"""`nv set …` and `nv unset …`."""

from collections.abc import Callable, Sequence

from netkit.lab.personalities.nvue import document
from netkit.lab.personalities.nvue.completion import completed
from netkit.lab.personalities.nvue.system import System
from netkit.lab.personality import Call


def change(verb: str) -> Callable[[System, Call, Sequence[str]], int]:
    """Return the command that sets or unsets."""

    def run(system: System, call: Call, given: Sequence[str]) -> int:
        changes = document.change(system.known, verb, given)
        typed = document.opened(system, changes.set)
        revision, is_new = system.open_revision(call.user)
        patch = completed(system.known, system.chassis, typed) if typed else changes.unset
        changed = system.store.change(revision, patch)
        if is_new:
            call.out(f"created [rev_id: {changed.number}]\n")
        return 0

    return run
