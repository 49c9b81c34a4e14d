"""The verbs that change devices, what a plan is compared with, and the gate in between."""
