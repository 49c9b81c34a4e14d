"""What people and machines are shown. The JSON of a plan is the plan's own file: netkit.plan.write."""
