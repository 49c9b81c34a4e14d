"""The faults the hardware model acts out."""

from netkit.lab.faults.kind import DEVICES, PORTS, SWITCH, SWITCH_PORT, Kind, Option

PAUSES = Option("pauses_per_s", 2500.0, "pause frames a second at the origin", 1, 1e6)
LANE = Option("lane", 0, "the lane, from 1; 0 means all", 0, 8)

HARDWARE = (
    Kind(
        "pause-storm",
        "model",
        PORTS,
        "A receiver that cannot keep up. A host NIC sends thousands of pauses a second to its leaf, as when its PCIe "
        "bus or GPU is slow; a switch port is an egress that more flows meet in than it can carry. Queues fill and "
        "pauses spread against the data, hop by hop, to the NICs that send there: those are victims. Only the origin "
        "sends pauses, or has a full egress queue, without receiving any there.",
        (
            PAUSES,
            Option("share", 0.6, "part of the time traffic is held up at the origin", 0.01, 1),
            Option("burst_ms", 50, "longest pause without a gap; a watchdog that detects sooner trips", 0.01, 1e6),
        ),
    ),
    Kind(
        "watchdog-trip",
        "model",
        PORTS,
        "A pause that never ends: a host NIC that hangs, or for a switch port, whatever is at its other end. The "
        "watchdog of the switch port that receives it detects a storm, stops heeding pauses there and drops what the "
        "queue holds, until the fault is healed and the restoration time is over. Where no watchdog is configured "
        "the pauses spread instead.",
        (PAUSES,),
    ),
    Kind(
        "pfc-off",
        "nic",
        PORTS,
        "PFC is off at one end of a cable. On a host NIC its settings say so; a switch port does it against its "
        "configuration. The end neither sends pauses nor heeds them: where congestion would have paused, the lossless "
        "class loses packets, on the way into this end and into the other one.",
    ),
    Kind(
        "dim-optic",
        "model",
        PORTS,
        "The lasers of a module grow weak. It sends less light at a higher bias current, the other end of the fibre "
        "receives less, and its bit error rate rises. Only modules that tell their light can show it.",
        (Option("db", 8.0, "how much weaker", 0.1, 35), LANE),
    ),
    Kind(
        "hot-optic",
        "model",
        PORTS,
        "A module runs hot, as with a blocked air duct. Both ports of a module that serves two show it.",
        (Option("celsius", 76.0, "the temperature it reaches", -40, 125),),
    ),
    Kind(
        "dirty-lane",
        "model",
        PORTS,
        "Dirt on one fibre of the connector at this end. The lane receives less light than its neighbours while the "
        "far end sends as much as ever; bit errors before correction rise by orders of magnitude, and the histogram "
        "of corrected symbols grows a tail. Copper has no light to lose but shows the errors.",
        (
            Option("db", 4.5, "light lost on the lane", 0.1, 35),
            Option("lane", 2, "the lane, from 1", 1, 8),
            Option("ber", 5e-5, "bit error rate before correction", 1e-12, 1e-2),
        ),
    ),
    Kind(
        "mixed-optic-firmware",
        "model",
        PORTS,
        "One module runs other firmware than all its kind. Both ports of a module that serves two show it.",
        (Option("firmware", "46.110.8", "the version it shows"),),
    ),
    Kind(
        "adaptive-routing-half-on",
        "model",
        (SWITCH, SWITCH_PORT),
        "Adaptive routing works on some ports of a fabric only. On a switch every second port to other switches does "
        "the opposite of what it is configured to; on a port, that port.",
    ),
    Kind(
        "counter-reset",
        "model",
        (*DEVICES, *PORTS),
        "Counters begin from zero again, once, as when somebody clears them or a driver is loaded again.",
    ),
    Kind(
        "counter-wrap",
        "model",
        (*DEVICES, *PORTS),
        "Counters that ever counted stand just below the end of their range, and soon begin from zero without "
        "anything being wrong. Bytes at line rate run over 32 bits several times a second, as they do where a device "
        "counts so narrowly. It stays so after healing, until they are cleared.",
        (
            Option("bits", 64, "how wide they are", choices=(32, 64)),
            Option("left", 20, "how many counts are left", 1, 1e9),
        ),
    ),
    Kind(
        "counter-stuck",
        "model",
        (*DEVICES, *PORTS),
        "Counters stand still while traffic goes on, as with a counter thread that has died.",
    ),
)
