"""The guarantees of every deploy, whatever fails."""

from netkit.deploy import ConfigState, DeviceResult, Outcome
from tests.deploy.scene import Scene

LONG_S = 10_000


def check(scene: Scene, outcome: Outcome) -> None:
    """Compare an outcome with the devices after every timer has expired."""
    scene.wait(LONG_S)
    assert {one.device for one in outcome.devices} == {device.name for device in scene.plan.devices}
    for one in outcome.devices:
        device = scene.devices[one.device]
        assert device.pending is None
        if device.running == device.startup or one.state is not ConfigState.UNKNOWN:
            assert scene.is_intended(one.device) or scene.is_as_before(one.device), one
        if one.result is DeviceResult.DONE:
            assert scene.is_intended(one.device), one
            assert device.startup == device.running, one
            assert one.state is ConfigState.INTENDED, one
        if one.state is ConfigState.INTENDED:
            assert scene.is_intended(one.device), one
        if one.state is ConfigState.AS_BEFORE:
            assert scene.is_as_before(one.device), one
            assert device.startup == device.running, one
            assert device.commits == 0 or one.result in {DeviceResult.REVERTED, DeviceResult.NOT_STARTED}, one
        if one.state is not ConfigState.UNKNOWN:
            assert not device.is_drained, one
        if one.state is ConfigState.UNKNOWN or one.is_failure:
            assert one.reasons, one
            assert one.exit_code != 0, one
        if one.result is DeviceResult.NOT_STARTED:
            assert outcome.stopped
    is_good = not outcome.stopped and all(
        one.result in {DeviceResult.DONE, DeviceResult.UNCHANGED} for one in outcome.devices
    )
    assert (outcome.exit_code == 0) == is_good
