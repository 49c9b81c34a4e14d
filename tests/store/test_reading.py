import math

from netkit.facts import Absent, Facts
from netkit.facts.optic import Lane, Module
from netkit.store.record import Measured, StoredHistory, measured
from tests.store import runs
from tests.store.runs import BEGAN_S, lit, snapshot


def test_values_that_a_module_does_not_measure_are_not_kept() -> None:
    lanes = {1: Lane(rx_dbm=-1.5, bias_ma=60.0), 2: Lane(), 3: Lane(tx_dbm=math.nan)}
    found = Facts(
        modules={
            "Ethernet1/1": Module(kind="optic", serial="S1", temperature_c=50.5, lanes=lanes),
            "Ethernet2/1": Module(kind="copper"),
            "Ethernet3/1": Module(is_present=False, serial="S3", temperature_c=1.0),
        }
    )
    values = {"Ethernet1/1": {"temperature_c": 50.5}, "Ethernet1/1/1": {"rx_dbm": -1.5, "bias_ma": 60.0}}
    assert measured(3.0, found) == Measured(3.0, values, {"Ethernet1/1": "S1"})
    assert measured(3.0, Facts(modules=Absent("not told"))) == Measured(3.0)


def test_history_asks_once_for_each_device_and_only_for_what_came_before() -> None:
    asked = []

    def find(device: str, before_s: float) -> list[Measured]:
        asked.append((device, before_s))
        return [runs.measured(1.0, -1.0), runs.measured(2.0, -1.5)]

    history = StoredHistory(find, snapshot(leaf01=lit("leaf01", -2.0)))
    assert history.readings("leaf01", "swp1/1", "rx_dbm") == [(1.0, -1.0), (2.0, -1.5)]
    assert history.readings("leaf01", "swp1/2", "rx_dbm") == []
    assert history.readings("leaf01", "swp1/1", "tx_dbm") == []
    assert asked == [("leaf01", BEGAN_S)]


def test_values_of_another_module_are_not_history_of_this_one() -> None:
    earlier = [runs.measured(1.0, -1.0), runs.measured(2.0, -1.1, "S2"), runs.measured(3.0, -1.2, "")]
    history = StoredHistory(lambda *_: earlier[:2], snapshot(leaf01=lit("leaf01", -4.0, "S2")))
    assert history.readings("leaf01", "swp1/1", "rx_dbm") == [(2.0, -1.1)]
    untold = StoredHistory(lambda *_: earlier[:2], snapshot(leaf01=lit("leaf01", -4.0, "")))
    assert untold.readings("leaf01", "swp1/1", "rx_dbm") == [(1.0, -1.0), (2.0, -1.1)]
