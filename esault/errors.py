"""Every error that eSault raises on purpose.

```
EsaultError
├── TopologyError      a mistake in a topology, named with unit and remedy
│   └── LocateError    a topology file or function that cannot be found or called
├── PayloadError       a key or a value that cannot travel between processes
├── StateError         attributes of a bolt that cannot be saved or moved
├── CheckpointError    a checkpoint that cannot be written or used
│   └── FencedError    another run has taken over the place where this one keeps its checkpoints
├── SourceError        a source that cannot be read
├── SinkError          a sink that cannot be written, or a table that cannot be read
├── UsageError         a command or a call that makes no sense here; nothing was started
├── PolicyTimeout      a policy that does not say in time what it wants
├── FrameError         bytes on a data channel that are no frame of this run
└── TopologyFailed     a run that ended because user code or the engine failed
```

Each message says what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from typing import ClassVar

__all__ = [
    "CheckpointError",
    "EsaultError",
    "FencedError",
    "FrameError",
    "LocateError",
    "PayloadError",
    "PolicyTimeout",
    "SinkError",
    "SourceError",
    "StateError",
    "TopologyError",
    "TopologyFailed",
    "UsageError",
]


class EsaultError(Exception):
    """The root of all errors raised by eSault."""

    #: False: what was asked for was right, and had begun or may begin later, so that a command ends with 1 and not with 2
    wrong_use: ClassVar[bool] = True


class TopologyError(EsaultError):
    """A mistake in a topology: its text names the unit, the mistake and the remedy."""


class LocateError(TopologyError):
    """A topology file, function or parameter that cannot be found or used."""


class PayloadError(EsaultError, TypeError):
    """A key or a value that cannot travel; its text names unit, key and type."""


class StateError(EsaultError, TypeError):
    """Attributes of a bolt that cannot be saved or moved; its text names unit and attribute."""


class CheckpointError(EsaultError):
    """A checkpoint that cannot be written or used; its text names the file and the remedy."""


class FencedError(CheckpointError):
    """Another run has taken over the place where this one keeps its checkpoints; it ends."""


class SourceError(EsaultError):
    """A source that cannot be read: missing, empty, not permitted, not decodable."""


class SinkError(EsaultError):
    """A sink that cannot be written or a table that cannot be read."""


class UsageError(EsaultError):
    """A command or a call that makes no sense here; nothing was started or changed."""


class PolicyTimeout(EsaultError):
    """A policy that did not say in time what it wants; it is skipped."""


class FrameError(EsaultError, ValueError):
    """Bytes that are not a frame, or not one of this run; counted, logged and dropped."""


class TopologyFailed(EsaultError):
    """A run ended in failure; `.report` holds what was measured until then, if anything was."""

    def __init__(self, message: str, report: object = None) -> None:
        super().__init__(message)
        self.report = report
