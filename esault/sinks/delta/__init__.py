"""Delta Lake tables as a sink: sub-units stage Parquet parts, and one process commits a version for each checkpoint.

| module | holds |
|---|---|
| `sink` | the sink: check, begin, write, prepare, commit_all |
| `fit` | whether rows and a table that is there go together |
| `part` | from rows to staged Parquet files with their partitions and statistics |
| `committer` | the process that commits, as the sink sees it |
| `commits`, `commit_process`, `entries`, `description` | what that process does; it alone knows deltalake |

delta-rs keeps threads, and panics in a process that was forked from one which has used it. The engine's processes are
forks, so none of them touches it: a process of its own does, which is started anew and not forked.
"""
