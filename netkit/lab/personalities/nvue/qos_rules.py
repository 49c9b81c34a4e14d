"""What must hold within the QoS of a configuration."""

from collections.abc import Iterator

from netkit.lab.personalities.nvue.schema import Issue
from netkit.lab.personalities.nvue.tree import Tree, child, has, is_on, number, text

PROFILES = ("congestion-control", "egress-scheduler", "mapping", "pfc")
LOSSLESS_MODES = ("", "lossless", "lossless-single-ipool")


def broken(tree: Tree) -> Iterator[Issue]:
    """Yield every reason the QoS cannot be applied."""
    qos = child(tree, "qos")
    yield from _pools(qos)
    yield from _schedulers(child(qos, "egress-scheduler"))
    yield from _thresholds(child(qos, "congestion-control"))
    yield from _profiles(tree)
    yield from _watchdogs(tree)


def is_lossless(qos: Tree) -> bool:
    """Whether the RoCE mode is on and lossless."""
    return is_on(qos, "roce") and text(qos, "roce", "mode") in LOSSLESS_MODES


def _pools(qos: Tree) -> Iterator[Issue]:
    here = "qos.traffic-pool"
    pools = child(qos, "traffic-pool")
    # default-lossy owns the whole buffer until it is given less.
    total = 100 if "default-lossy" not in pools else 0
    total += sum(number(pools, name, "memory-percent") for name in pools)
    if pools and total > 100:
        yield Issue(here, f"the pools take {total} % of the memory")
    if "roce-lossless" in pools and not is_lossless(qos):
        yield Issue(f"{here}.roce-lossless", "this pool needs RoCE in lossless mode")
    if "default-lossless" in pools and "roce-lossless" in pools:
        yield Issue(here, "only one lossless pool can be used")


def _schedulers(schedulers: Tree) -> Iterator[Issue]:
    for profile in schedulers:
        classes = child(schedulers, profile, "traffic-class")
        here = f"qos.egress-scheduler.{profile}.traffic-class"
        for name in classes:
            mode = text(classes, name, "mode")
            if not mode:
                yield Issue(f"{here}.{name}", "a traffic class needs a mode")
            if (mode == "dwrr") != has(classes, name, "bw-percent"):
                yield Issue(f"{here}.{name}", "bw-percent goes with the mode dwrr, and only with it")
        total = sum(number(classes, name, "bw-percent") for name in classes)
        if total > 100:
            yield Issue(here, f"the weights make {total} %")


def _thresholds(profiles: Tree) -> Iterator[Issue]:
    for profile in profiles:
        classes = child(profiles, profile, "traffic-class")
        for name in classes:
            low, high = number(classes, name, "min-threshold"), number(classes, name, "max-threshold")
            if low and high and low >= high:
                where = f"qos.congestion-control.{profile}.traffic-class.{name}"
                yield Issue(where, f"min-threshold {low} is not below max-threshold {high}")


def _profiles(tree: Tree) -> Iterator[Issue]:
    for name in child(tree, "interface"):
        for kind in PROFILES:
            profile = text(tree, "interface", name, "qos", kind, "profile")
            if profile and profile not in child(tree, "qos", kind):
                yield Issue(f"interface.{name}.qos.{kind}.profile", f"qos {kind} has no profile {profile}")


def _watchdogs(tree: Tree) -> Iterator[Issue]:
    qos = child(tree, "qos")
    if is_lossless(qos) or child(qos, "pfc", "default-global", "switch-priority"):
        return
    for name in child(tree, "interface"):
        interface = child(tree, "interface", name)
        if has(interface, "qos", "pfc-watchdog") and not text(interface, "qos", "pfc", "profile"):
            yield Issue(f"interface.{name}.qos.pfc-watchdog", "the watchdog needs PFC on the port")
