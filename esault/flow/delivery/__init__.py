"""Delivery: what was sent, what became of it, and what must be sent again.

This room owns roots (a spout's batches, with all that a replay needs), the lineage that ties a batch to its root, acks,
and the ledger that adds them up: two XORs for each root, in the owner's own data loop or in ack servers. The rest of
`flow/` imports it, and `runtime/` runs ack servers; it knows nothing of keys, tables or user code.

Its one invariant: a root is done only when everything that descends from it was processed, whatever was lost, doubled
or reordered; and where nothing was, it is done without a replay.
"""
