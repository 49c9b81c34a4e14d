#!/usr/bin/python
"""Checks the rails of a GPU host: links, addresses, and every route by asking the kernel for it."""

from __future__ import annotations

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.netkit_rails import settled

DOCUMENTATION = """
module: netkit_rails
short_description: Check links, addresses and routes of a GPU host's rails
description: Reads only. Asks again until all is as it should be, or the time is up.
options:
  rails:
    description:
      - What each rail should be. C(interface), C(address) with its prefix length, C(mtu_bytes), and C(lookups).
      - A lookup has C(to), an address; C(via), the gateway that must be used, or nothing where the kernel must
        refuse; and C(unbound), whether the route must be found without naming the rail, too.
    type: list
    elements: dict
    required: true
  settle_s:
    description: How long it may take.
    type: float
    default: 0
  tolerate_dark:
    description: Do not mind rails that were up without a carrier before the change that waits now.
    type: bool
    default: false
"""


def main() -> None:
    """Look until it is right, or for as long as it may take."""
    module = AnsibleModule(
        argument_spec={
            "rails": {"type": "list", "elements": "dict", "required": True},
            "settle_s": {"type": "float", "default": 0},
            "tolerate_dark": {"type": "bool", "default": False},
        },
        supports_check_mode=True,
    )
    rails = module.params["rails"]
    problems, dark = settled(rails, module.params["settle_s"], tolerate_dark=module.params["tolerate_dark"])
    if problems:
        module.fail_json(msg="; ".join(problems[:8]), problems=problems, dark=dark)
    module.exit_json(changed=False, dark=dark, lookups=sum(len(rail["lookups"]) for rail in rails))


if __name__ == "__main__":
    main()
