"""Counters → a live view: feeds deliver samples as they come, and pure functions draw them."""
