"""All views by the form of their command."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netkit.lab.personalities.eos.commands import Captured, closest
from netkit.lab.personalities.eos.reply import EosReply, invalid
from netkit.lab.personalities.eos.views import bgp, interfaces, neighbors, optics, queues, services, system
from netkit.lab.personalities.eos.views.lens import Lens

Show = Callable[[Lens, Captured], EosReply]


@dataclass(frozen=True, slots=True)
class EosView:
    """One show command."""

    form: str
    show: Show


TABLES = (
    system.CONFIG_VIEWS,
    system.SYSTEM_VIEWS,
    services.VIEWS,
    interfaces.VIEWS,
    optics.VIEWS,
    queues.PFC_VIEWS,
    queues.QUEUE_VIEWS,
    bgp.BGP_VIEWS,
    bgp.ROUTE_VIEWS,
    neighbors.VIEWS,
)
FORMS: tuple[tuple[str, Show], ...] = tuple(
    sorted((one for table in TABLES for one in table), key=lambda one: one[0].count("<"))
)
"""Forms that take any word come behind those that say which."""
VIEWS: tuple[EosView, ...] = tuple(EosView(form, show) for form, show in FORMS)


def show(lens: Lens, words: Sequence[str]) -> EosReply:
    """Answer a show command."""
    found = closest(VIEWS, words)
    if isinstance(found, int):
        raise invalid(words, found)
    view, captured = found
    return view.show(lens, captured)
