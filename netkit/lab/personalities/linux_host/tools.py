"""The NIC tools of a host by the name they are called by."""

from collections.abc import Mapping

from netkit.lab.personalities.linux_host import dcb, ethtool, mlnx_qos, mlxconfig, mlxlink, pci, rdma
from netkit.lab.personalities.linux_host.machine import Tool

TOOLS: Mapping[str, Tool] = {
    "cma_roce_mode": rdma.cma_roce_mode,
    "cma_roce_tos": rdma.cma_roce_tos,
    "dcb": dcb.dcb,
    "ethtool": ethtool.ethtool,
    "flint": mlxconfig.mstflint,
    "ibdev2netdev": rdma.ibdev2netdev,
    "ibv_devinfo": rdma.ibv_devinfo,
    "lspci": pci.lspci,
    "mlnx_qos": mlnx_qos.mlnx_qos,
    "mlxconfig": mlxconfig.mlxconfig,
    "mlxlink": mlxlink.mlxlink,
    "mlxreg": mlxconfig.mlxreg,
    "mstconfig": mlxconfig.mlxconfig,
    "mstflint": mlxconfig.mstflint,
    "mstlink": mlxlink.mlxlink,
    "mstreg": mlxconfig.mlxreg,
    "nvidia-smi": pci.nvidia_smi,
    "rdma": rdma.rdma,
    "setpci": pci.setpci,
    "show_gids": rdma.show_gids,
}
