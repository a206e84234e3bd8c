"""The words that the two paths say to each other: control messages, and nothing else.

Owned by no room, imported by `flow`, `control` and `runtime`. The one invariant: every control message is a
frozen dataclass of plain values in `messages.control`, and a receiver that does not know one reports it.
"""
