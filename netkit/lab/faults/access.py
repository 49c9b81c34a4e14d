"""The faults on the way in to a device: its management plane, never its data."""

from netkit.lab.faults.kind import DEVICES, SWITCH, Kind, Option

ACCESS = (
    Kind(
        "unreachable",
        "management",
        DEVICES,
        "Nothing answers at the device's management address: connections are refused, or silently time out. "
        "Data goes on.",
        (Option("manner", "refuses", "how it does not answer", choices=("refuses", "silently")),),
    ),
    Kind(
        "slow",
        "management",
        DEVICES,
        "Every command takes longer, as on a loaded control CPU.",
        (Option("seconds", 5.0, "how much longer", 0.1, 600),),
    ),
    Kind("refuses-auth", "management", DEVICES, "The device takes no login: keys and passwords are refused."),
    Kind(
        "drops-after-commit",
        "management",
        (SWITCH,),
        "The connection is cut the moment a change takes effect, before the answer, and cannot be opened again for a "
        "while. A change that waits for confirmation goes back by itself. On a Linux switch: a change of ports or "
        "services; one of frr.conf alone is between FRR's own programs, and nothing is cut.",
        (Option("seconds", 30.0, "how long the device stays away", 0.1, 3600),),
    ),
    Kind(
        "disk-full",
        "management",
        DEVICES,
        "Nothing can be written: saving a configuration, a checkpoint or an uploaded file fails as it does on a full "
        "disk. The running configuration is not touched. `df` and EOS's `show file systems` tell it.",
    ),
    Kind(
        "hangs",
        "management",
        DEVICES,
        "A command begins and never ends, until its caller gives up. Logging in still works.",
        (Option("after", 0, "how many commands answer before one hangs", 0, 1000),),
    ),
    Kind(
        "garbage",
        "management",
        DEVICES,
        "Commands exit with 0 but print something that is not what they should, cut off in the middle.",
    ),
    Kind(
        "apply-fails-quietly",
        "management",
        (SWITCH,),
        "A change is taken and the command ends with exit code 0, but the change does not take effect; a line in the "
        "output tells. On a Linux switch: what frr-reload.py, netplan and restarts of services should do.",
    ),
)
