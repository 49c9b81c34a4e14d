"""Where environments that were installed before look for the plugin; `pip install` again names its new place."""

from netkit.project.pytest_plugin import *  # noqa: F403
