"""The getters of a NAPALM driver as a source of facts: for switches whose driver is all there is."""
