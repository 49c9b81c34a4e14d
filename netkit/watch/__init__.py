"""Stage: counters → a live view. Feeds deliver samples as they come; what is drawn of them is a pure function."""
