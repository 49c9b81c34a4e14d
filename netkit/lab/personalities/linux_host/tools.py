"""The NIC tools of a host by the name they are called by."""

from collections.abc import Mapping

from netkit.lab.personalities.linux_host import ethtool, mlnx_qos
from netkit.lab.personalities.linux_host.machine import Tool

TOOLS: Mapping[str, Tool] = {
    "ethtool": ethtool.ethtool,
    "mlnx_qos": mlnx_qos.mlnx_qos,
}
