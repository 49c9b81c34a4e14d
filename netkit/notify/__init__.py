"""Stage: what changed since the last notification → messages to people and systems, each once.

Notifications are decided and stored in the transaction of the run they are about, and sent after that by
whichever process claims them.
"""
