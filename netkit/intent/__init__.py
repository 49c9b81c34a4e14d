"""Stage 1: intent files → Intent."""

from netkit.intent.load import Loaded, Places, draft, load
from netkit.intent.model import Intent

__all__ = ["Intent", "Loaded", "Places", "draft", "load"]
