"""All views by the form of their command."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netkit.lab.personalities.eos.patterns import Captured, closest
from netkit.lab.personalities.eos.reply import Reply, invalid
from netkit.lab.personalities.eos.views import (
    bgp,
    configs,
    interfaces,
    neighbors,
    optics,
    pfc,
    queues,
    routes,
    services,
    system,
)
from netkit.lab.personalities.eos.views.lens import Lens

Show = Callable[[Lens, Captured], Reply]


@dataclass(frozen=True, slots=True)
class View:
    """One show command."""

    form: str
    show: Show


MODULES = (configs, system, services, interfaces, optics, pfc, queues, bgp, routes, neighbors)
FORMS: tuple[tuple[str, Show], ...] = tuple(
    sorted((one for module in MODULES for one in module.VIEWS), key=lambda one: one[0].count("<"))
)
"""Forms that take any word come behind those that say which."""
VIEWS: tuple[View, ...] = tuple(View(form, show) for form, show in FORMS)


def show(lens: Lens, words: Sequence[str]) -> Reply:
    """Answer a show command."""
    found = closest(VIEWS, words)
    if isinstance(found, int):
        raise invalid(words, found)
    view, captured = found
    return view.show(lens, captured)
