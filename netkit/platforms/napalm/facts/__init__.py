"""From what getters return, as JSON, to facts; pure."""
