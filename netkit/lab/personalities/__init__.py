"""The network operating systems of the lab: one folder per NOS, named as its platform."""
