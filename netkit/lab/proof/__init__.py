"""Whether a lab is what its design says: converged, and reached by real packets."""
