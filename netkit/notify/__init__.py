"""Stage: what changed since it was last told → messages to people and systems, each once.

What is told is decided with the run it is about and stored with it; it is sent after that, by whoever claims it.
"""
