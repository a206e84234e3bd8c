"""The Spark engine: the topology of a file as one query of PySpark Structured Streaming, its bolts unmodified.

| module | holds |
|---|---|
| `refusals`, `adapted` | what Spark cannot do, found before anything starts; what it has in a way of its own |
| `layout`, `statefulness` | which unit runs where: inlined behind its senders, or as tasks of a level with state |
| `job` | what the workers are told: plain values |
| `frames`, `runners`, `task`, `event_time` | a worker's part: the plain cores of `esault.flow` between frames |
| `runner`, `outputs`, `async_runner`, `worker_error` | one unit in a worker, also where its calls wait; what ends a topology there |
| `reading`, `reader` | a spout on the driver, which learns positions, and in a worker, which reads from one to another |
| `offsets`, `source` | positions as offsets of a Python data source |
| `stages`, `processor`, `store` | those cores in `mapInArrow` and in `transformWithState` |
| `journal`, `landing`, `dead_letters` | commits of sinks, once an epoch; what comes back to the driver |
| `kept`, `rescale`, `seeds` | what a run may go on from, and how with other tasks |
| `workers`, `shipping` | a cluster's Pythons, and the files for them |
| `tally`, `query`, `run` | counts; the query; a run from its checks to its report |

One micro-batch is one epoch: positions, state and what sinks show go on together or not at all.
"""
