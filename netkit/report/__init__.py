"""Reports for people and machines. The JSON of a plan is the plan's own file: netkit.plan.write."""
