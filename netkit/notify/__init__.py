"""Changes since the last notification → messages to people and systems, each sent once.

Notifications are decided and queued in the transaction of their run, and sent afterwards by whichever process claims
them.
"""
