"""All views by the form of their command."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netkit.lab.personalities.eos.patterns import Captured, closest
from netkit.lab.personalities.eos.reply import Reply, invalid
from netkit.lab.personalities.eos.views import configs, system
from netkit.lab.personalities.eos.views.lens import Lens

Show = Callable[[Lens, Captured], Reply]


@dataclass(frozen=True, slots=True)
class View:
    """One show command."""

    form: str
    show: Show


VIEWS: tuple[View, ...] = (
    *(View(form, show) for form, show in configs.VIEWS),
    *(View(form, show) for form, show in system.VIEWS),
)


def show(lens: Lens, words: Sequence[str]) -> Reply:
    """Answer a show command."""
    found = closest(VIEWS, words)
    if isinstance(found, int):
        raise invalid(words, found)
    view, captured = found
    return view.show(lens, captured)
