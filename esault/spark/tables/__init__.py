"""Tables that a pipeline declares: made of landed tables and of one another, only what is new, by Spark.

| module | holds |
|---|---|
| `declared` | `Tables`: what a topology file's `pipeline(tables)` declares; no Spark |
| `code`, `graph` | when a table's code has changed; the order of the tables, and their picture |
| `contract` | what was promised of a table's columns, and how they may change |
| `expectations` | what rows must fulfil, counted, and what becomes of those that do not |
| `merge`, `keyed` | rows by key: the newest, their history, totals; and the table that they are |
| `rewriting` | which files hold rows that change |
| `update` | what a table has to read next |
| `step`, `steps` | the job that makes one table; those of all |
| `runs`, `schedule` | runs of a pipeline, tried again and written down; when they are due |
| `history`, `lineage` | what runs did, and the quality of data; events of OpenLineage |
| `delta_log` | a log of Delta Lake beside ours |
"""

from __future__ import annotations
