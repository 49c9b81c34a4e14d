"""The PFC watchdog: on where it should be, and quiet."""

from collections.abc import Iterator

from netkit.design import Switch
from netkit.facts import Absent
from netkit.facts.counter import parts, place
from netkit.judge import PASSED, CheckContext, DeviceContext, Finding, device_check, fail, skip


@device_check(layer="qos", needs=["watchdogs"], on="switch", follows=[])
def enabled(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The watchdog guards the lossless priority of every port.

    Without it, a single NIC that never stops pausing blocks all senders through the same switches. `netkit deploy`
    turns it on.
    """
    found = device.facts.watchdogs
    if isinstance(found, Absent):
        return
    for port in device.ports:
        for priority in context.fabric.lossless.lossless_priorities:
            guard = found.get(place(port, priority))
            if guard is None or not guard.is_on:
                yield fail(place(port, priority), "no PFC watchdog", "netkit plan shows what is missing")
            else:
                yield PASSED


@device_check(layer="qos", needs=["watchdogs"], on="switch", follows=[])
def storms(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """No port is in a pause storm now.

    During a storm the watchdog drops what the port should send. The other end pauses without end: usually a host whose
    NIC, driver or PCIe hangs. Take it out of service and reset it.
    """
    del context
    found = device.facts.watchdogs
    if isinstance(found, Absent):
        return
    for at, guard in found.items():
        port, priority = parts(at)
        if port not in device.ports:
            continue
        if guard.is_stormed:
            peer = device.ports[port]
            text = f"a pause storm on priority {priority} from {peer.peer}:{peer.peer_port} has not ended"
            yield fail(at, text, f"take {peer.peer} out of service and see why it pauses")
        else:
            yield PASSED


@device_check(
    layer="qos",
    needs=["counters"],
    on="switch",
    window=True,
    follows=["watchdog.storms", "pfc.storms", "pfc.origin", "pfc.rate"],
)
def trips(context: CheckContext, device: DeviceContext) -> Iterator[Finding]:
    """The watchdog has not tripped since the last reading.

    Each trip means that packets of the lossless class were dropped. `netkit check pfc` shows the device at the other
    end.
    """
    if not isinstance(device.device, Switch):
        return
    for port in device.device.ports:
        for priority in context.fabric.lossless.lossless_priorities:
            at = place(port.name, priority)
            trips = device.delta("watchdog_detected", at)
            if not trips.is_known:
                yield skip(at, f"how often the watchdog tripped is not known: {trips.state}")
            elif trips.value:
                drops = device.delta("watchdog_drops", at)
                dropped = drops.value if drops.is_known else "not reported"
                text = f"tripped {trips.value} times in {trips.seconds:.0f} s, for {port.peer}:{port.peer_port}"
                yield fail(at, text, f"see why {port.peer} pauses without end", dropped=dropped)
            else:
                yield PASSED
