"""A check: a pure generator of findings, whose docstring explains what a failure means and what to do."""

import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal, get_args

from netkit.errors import CheckError, Problem
from netkit.facts.counter import COUNTERS
from netkit.facts.device import KINDS
from netkit.judge.context import CheckContext, DeviceContext
from netkit.judge.finding import Finding

Of = Literal["switch", "host", "device"]
Layer = Literal["reach", "physical", "link", "routing", "qos", "congestion", "host", "application"]
LAYERS: tuple[Layer, ...] = ("physical", "link", "routing", "host", "qos", "reach", "congestion", "application")
"""In the order of repair: faults further left are repaired first, and cause those further right."""
TRAFFIC = ("roce", "cnp", "lossless")
"""Whose priorities a check may read of a counter of priorities or queues: `queue_drops/cnp`."""
CABLE_FAULTS = ("links.up", "links.flaps", "links.cabling", "optics.fec", "load.errors")
"""The checks that find a cable without link or with loss: faults of the traffic over it may follow."""
OfDevice = Callable[[CheckContext, DeviceContext], Iterable[Finding]]
OfFabric = Callable[[CheckContext], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """One check."""

    name: str
    """`file.function`, with dashes; the file's part is filled in when it is loaded."""
    text: str
    """Its docstring."""
    layer: Layer
    needs: tuple[str, ...]
    """Kinds of facts without which a device cannot be judged."""
    has_window: bool
    """Whether it judges counters over a window."""
    on: Of
    of_device: OfDevice | None = field(default=None, repr=False)
    of_fabric: OfFabric | None = field(default=None, repr=False)
    follows: tuple[str, ...] | None = None
    """The checks, as names, files or globs, whose findings at the same place its own may follow from; by default all of
    the layers before its own, on the same cable."""
    reads: tuple[str, ...] | None = None
    """What it reads of any device: kinds of facts, and names of counters, perhaps with a class of traffic. None: of a
    check of a device, only that device's facts; of a check of the fabric, all facts."""

    @property
    def is_local(self) -> bool:
        """Whether it reads one device only, so that it can be judged where that device is read."""
        return self.of_device is not None and self.reads is None

    @property
    def title(self) -> str:
        """The first line of its text."""
        return self.text.partition("\n")[0]


def device_check(
    *,
    layer: Layer,
    needs: Sequence[str] = (),
    on: Of = "device",
    window: bool = False,
    follows: Sequence[str] | None = None,
    reads: Sequence[str] | None = None,
) -> Callable[[OfDevice], Check]:
    """Make a check from a function that judges one device; devices without the needed facts are skipped.

    A function that also looks at other devices or at earlier runs lists in `reads` the facts and counters it looks at.
    """

    def make(function: OfDevice) -> Check:
        name, text = _described(function, needs)
        _refuse(name, "on", on, get_args(Of))
        _refuse(name, "layer", layer, LAYERS)
        causes = None if follows is None else tuple(follows)
        looks_at = _readable(name, needs, reads)
        return Check(name, text, layer, tuple(needs), window, on, of_device=function, follows=causes, reads=looks_at)

    return make


def fabric_check(
    *,
    layer: Layer,
    needs: Sequence[str] = (),
    window: bool = False,
    follows: Sequence[str] | None = None,
    reads: Sequence[str] | None = None,
) -> Callable[[OfFabric], Check]:
    """Make a check from a function that judges the whole fabric; it must handle missing facts itself.

    `reads` lists the facts and counters it looks at; without it, a site has to send all facts of its devices.
    """

    def make(function: OfFabric) -> Check:
        name, text = _described(function, needs)
        _refuse(name, "layer", layer, LAYERS)
        causes = None if follows is None else tuple(follows)
        about = _readable(name, needs, reads)
        return Check(name, text, layer, tuple(needs), window, "device", of_fabric=function, follows=causes, reads=about)

    return make


def is_meant(key: str, name: str) -> bool:
    """Whether a name, a file name or a glob chooses a check."""
    wanted = name.replace("_", "-")
    return key == wanted or key.partition(".")[0] == wanted or fnmatchcase(key, wanted)


def _described(function: Callable[..., object], needs: Sequence[str]) -> tuple[str, str]:
    name = function.__name__.replace("_", "-")
    text = inspect.cleandoc(function.__doc__ or "")
    if not text:
        remedy = "explain in it what a failure means and what to do"
        raise CheckError(Problem(f"the check {name} has no docstring", remedy))
    if isinstance(needs, str):
        raise CheckError(Problem(f"the check {name} has needs={needs!r}, a text", f"write needs=[{needs!r}]"))
    unknown = [kind for kind in needs if kind not in KINDS]
    if unknown:
        raise CheckError(Problem(f"the check {name} needs {unknown[0]!r}", f"use one of {', '.join(KINDS)}"))
    return name, text


def _readable(name: str, needs: Sequence[str], reads: Sequence[str] | None) -> tuple[str, ...] | None:
    """What a check reads, with what it needs; CheckError if there are no such facts or counters."""
    if reads is None:
        return None
    if isinstance(reads, str):
        raise CheckError(Problem(f"the check {name} has reads={reads!r}, a text", f"write reads=[{reads!r}]"))
    for one in reads:
        counter, _, traffic = one.partition("/")
        is_numbered = traffic in TRAFFIC and counter in COUNTERS and COUNTERS[counter].scope in {"priority", "queue"}
        if one not in KINDS and one not in COUNTERS and not is_numbered:
            remedy = "use kinds of facts and names of counters, as docs/fact-catalogue.md lists them"
            raise CheckError(Problem(f"the check {name} reads {one!r}", remedy))
    return tuple(dict.fromkeys((*(kind for kind in needs if kind != "counters"), *reads)))


def _refuse(name: str, what: str, given: str, known: Sequence[str]) -> None:
    """Refuse wrong values that an untyped file may give: they would be misread, or break the report."""
    if given not in known:
        raise CheckError(Problem(f"the check {name} has {what}={given!r}", f"use one of {', '.join(known)}"))
