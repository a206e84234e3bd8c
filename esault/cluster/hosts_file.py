"""hosts.toml: the nodes of a cluster, and what a run must know of them.

```toml
hosts = ["10.0.0.2:7420", "10.0.0.3:7420"]    # nodes; those that have joined them are found by themselves
key = "cluster.key"                           # or --key; a relative path means the folder of this file
shared = ["/mnt/data"]                        # folders that all hosts see as one and the same
strategy = "spread"                           # or "pack": few hosts, little traffic; "cheapest": by --slot-price

[needs]
count = ["gpu"]                               # hosts that were started with --offers gpu

[apart]
count = ["match"]                             # not on the same host as these, where there is a choice
```
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from esault.cluster.address import split
from esault.errors import UsageError

__all__ = ["HostsFile", "read_hosts"]

STRATEGIES = ("spread", "pack", "cheapest")
_KEYS = {"hosts", "key", "shared", "strategy", "needs", "apart"}


@dataclass(frozen=True)
class HostsFile:
    """The content of a hosts file."""

    hosts: tuple[str, ...]
    key: str | None = None
    shared: tuple[str, ...] = ()
    #: empty: it is not said
    strategy: str = ""
    #: unit -> what its hosts must offer
    needs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: unit -> units whose hosts it avoids
    apart: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def read_hosts(path: str | os.PathLike[str]) -> HostsFile:
    """Read and check it. Raises UsageError, naming the file and what is wrong in it."""
    toml = _toml(path)
    try:
        found = toml.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UsageError(f'there is no file {path}; it would say hosts = ["HOST:PORT", ...]') from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    unknown = sorted(set(found) - _KEYS)
    if unknown:
        raise UsageError(f"{path}: {unknown[0]!r} is not known; there are {', '.join(sorted(_KEYS))}")
    hosts = _texts(path, "hosts", found.get("hosts", []))
    if not hosts:
        raise UsageError(f'{path} names no host; write hosts = ["HOST:PORT", ...]')
    for each in hosts:
        split(each)
    strategy = found.get("strategy", "")
    if "strategy" in found and strategy not in STRATEGIES:
        raise UsageError(f"{path}: strategy = {strategy!r} is not known; it is one of {', '.join(STRATEGIES)}")
    key = found.get("key")
    if key is not None and not isinstance(key, str):
        raise UsageError(f"{path}: key = {key!r} is no path")
    shared = _texts(path, "shared", found.get("shared", []))
    for each in shared:
        if not os.path.isabs(each):
            raise UsageError(f"{path}: shared = [{each!r}] is no absolute path")
    return HostsFile(
        hosts,
        None if key is None else os.path.join(os.path.dirname(os.path.abspath(path)), key),
        shared,
        strategy,
        _table(path, "needs", found.get("needs", {})),
        _table(path, "apart", found.get("apart", {})),
    )


def _toml(path: Any) -> Any:
    """Python's own reader, which 3.10 has not, or the package that it comes from."""
    for name in ("tomllib", "tomli"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    raise UsageError(f"{path} cannot be read by Python 3.10 without the package tomli: pip install 'esault[hosts]'")


def _texts(path: Any, name: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise UsageError(f"{path}: {name} = {value!r} is no list of texts")
    return tuple(value)


def _table(path: Any, name: str, value: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(value, dict):
        raise UsageError(f"{path}: [{name}] holds lines like UNIT = [...]")
    return {unit: _texts(path, f"{name}.{unit}", each) for unit, each in value.items()}
