"""The owner of a key: the ring of places and the output table that says which sub-unit owns which part of it.

```
emit ─► layer one: key ─► place ─► sub-unit      this room; changed by control, followed by every sender
           └─► layer two: key ─► element         flow.elements; inside one sub-unit, invisible outside
```

Plain values without I/O, for both paths. The one invariant: the intervals of a table tile the ring.
"""
