"""Specifics of snmpd on a Linux switch with FRR."""

import re

from netkit.platforms.agents import Agents, SnmpDialect

AGENTS = Agents(re.compile(r"swp\d{1,4}(?:s\d{1,2})?", re.ASCII), SnmpDialect(re.compile(r"FRRouting (\d\S{0,38})")))
