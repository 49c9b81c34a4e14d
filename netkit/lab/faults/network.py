"""The faults that are real: in a node's kernel, in its NICs, or in its cabling."""

from netkit.lab.faults.kind import HOST, HOST_NIC, PORTS, SWITCH, SWITCH_PORT, Kind, Option

NETWORK = (
    Kind(
        "link-flap",
        "kernel",
        PORTS,
        "A link that goes down and comes back, again and again, as with a module that is not seated well. Sessions "
        "over it go with it, and carrier changes add up at both ends.",
        (
            Option("up_s", 8.0, "how long it stays up", 0.2, 3600),
            Option("down_s", 2.0, "how long it stays down", 0.2, 3600),
        ),
    ),
    Kind(
        "slow-link-up",
        "kernel",
        PORTS,
        "A module whose equalizer does not settle begins anew, once: the link is gone until it has come up. Then all "
        "is well again; a NIC tells how long it took, a switch when its link went and came. Healing swaps the module: "
        "between switches the link goes once more, and comes quickly.",
        (Option("seconds", 45.0, "how long the link takes to come up", 0.1, 3600),),
    ),
    Kind(
        "wrong-mtu",
        "kernel",
        PORTS,
        "One end of a link has a smaller MTU than it is configured with. Small packets pass, large ones are lost.",
        (Option("bytes", 1500, "the MTU it has", 1280, 9216),),
    ),
    Kind(
        "lossy",
        "kernel",
        PORTS,
        "A port loses some of what it sends without counting it, as bits do that go wrong on the way: the longer a "
        "packet, the likelier. Small packets pass, and sessions stay up.",
        (
            Option("percent", 60.0, "how many of the packets are lost", 0.1, 100),
            Option("above_bytes", 4000, "longer than this a packet must be to be lost; 0 loses some of all", 0, 9216),
        ),
    ),
    Kind(
        "wrong-cable",
        "kernel",
        PORTS,
        "Two cables of one device are swapped: each is plugged in where the other belongs. On a host that swaps two "
        "rails. Neighbours by LLDP differ from the plan, and addresses no longer reach their gateways.",
        (Option("with", "", "the other port of the same device; by default the next one of its kind"),),
    ),
    Kind(
        "missing-host-route",
        "kernel",
        (HOST, HOST_NIC),
        "Static routes of a host are gone, as when a network daemon did not finish. Without a NIC every rail loses "
        "one, with a NIC that rail. What the route led to falls to the unreachable route, or to another NIC.",
        (Option("prefix", "", "the destination; by default the first one with a gateway"),),
    ),
    Kind(
        "wrong-source-route",
        "kernel",
        (HOST_NIC,),
        "The rule that sends a rail's own traffic to its own table leads to the table of another rail. Packets leave "
        "on the wrong NIC, with a source address that does not belong to it.",
        (Option("as", "", "the interface whose table it uses; by default the next rail"),),
    ),
    Kind(
        "ecn-unmarked",
        "kernel",
        (SWITCH, SWITCH_PORT),
        "A switch does not mark congestion, whatever its configuration says. No packet leaves it with CE set, so "
        "receivers behind it send no CNPs and nobody slows down: where many send to one, pauses are all that is left.",
    ),
    Kind(
        "cnp-remarked",
        "kernel",
        (SWITCH, SWITCH_PORT),
        "A switch gives CNPs another DSCP on their way out. Further on they ride in a queue that is not theirs.",
        (Option("dscp", 4, "what they leave with", 0, 63),),
    ),
    Kind(
        "bgp-session-down",
        "kernel",
        (SWITCH_PORT,),
        "What BGP sends over one link is lost, as when a control-plane policer eats it. The link stays up; the session "
        "falls when its hold time is over, and half or all of the paths behind it with it.",
    ),
    Kind(
        "cnp-loss",
        "nic",
        (HOST_NIC,),
        "A NIC swallows CNPs: those that arrive are neither handled nor ignored, or those it counts as sent never "
        "leave. The sums of sent and of received CNPs of its rail part.",
        (Option("direction", "received", "which CNPs are lost", choices=("received", "sent")),),
    ),
    Kind(
        "wrong-dscp-map",
        "nic",
        (HOST, HOST_NIC),
        "A host maps the DSCP of RoCE to another priority than its leaf does, as after a firmware update that brought "
        "the defaults back. What arrives fills a buffer that nothing protects, and pauses from the leaf hold up a "
        "priority that RoCE does not use.",
        (Option("priority", 0, "where RoCE lands instead", 0, 7),),
    ),
)
