"""The fabric that exists → the intent that designs it. Pure: files in, an intent out."""

from netkit.adopt.fit import fitted
from netkit.adopt.proposal import Adoption, FoundIntent, propose
from netkit.adopt.survey import Survey, survey

__all__ = ["Adoption", "FoundIntent", "Survey", "fitted", "propose", "survey"]
