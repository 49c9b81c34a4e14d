"""The fabric that exists → the intent that designs it. Pure: files in, an intent out."""

from netkit.adopt.fit import fitted
from netkit.adopt.proposal import Proposal, Source, propose
from netkit.adopt.survey import Survey, survey

__all__ = ["Proposal", "Source", "Survey", "fitted", "propose", "survey"]
