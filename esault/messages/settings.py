"""Settings of a run's data path; one frozen value, made by the command, sent to every process."""

from __future__ import annotations

from esault.messages.delivery import Delivery
from esault.value_class import value_class

__all__ = ["Settings"]


@value_class(frozen=True)
class Settings:
    """Sizes in rows or bytes, times in seconds. The defaults are those that `bench/throughput` chose."""

    #: what is promised about each tuple; the words "alo", "eo" and "none" do as well
    delivery: Delivery = Delivery.AT_LEAST_ONCE
    #: ack servers; 0 keeps each ledger with the owner of the roots
    ackers: int = 0
    #: roots that a spout's sub-unit has open (not yet processed) at most
    max_pending: int = 8
    #: ... or more, while fewer tuples than this are open for each sub-unit of the widest unit, where that has several:
    #: what is in flight is divided among them, and one that has nothing to do is not worth its slot
    pending_rows: int = 64
    #: roots that are processed but not yet durable, at most
    max_undurable: int = 4096
    #: tuples that a spout is asked for at a time, at most: the size of a root, which begins at 128 and follows the load
    root_rows: int = 1024
    #: the same for a spout whose `Columns` hold arrays
    root_array_rows: int = 16_384
    #: rows in an output buffer that send it
    frame_rows: int = 512
    #: bytes of a frame that are aimed at; buffers of large rows go earlier
    frame_bytes: int = 1 << 20
    #: seconds after which an output buffer goes although it is not full
    linger: float = 0.001
    #: bytes that wait in an inbox before reading stops
    inbox_bytes: int = 1 << 20
    #: a round of prepare and commit of a sink comes after so many seconds ...
    commit_every: float = 0.05
    #: ... or so many rows
    commit_rows: int = 10_000
    #: keys that a route remembers
    route_cache: int = 262_144
    #: shortest grace before open roots are replayed after a death
    min_grace: float = 0.2
    #: seconds without any ack after which a root is replayed
    replay_after: float = 300.0
    #: rows that a change may hold or carry before the window waits for them too
    hold_rows: int = 200_000
    #: seconds between two probes to a sub-unit that a policy watches
    probe_every: float = 0.1
    #: seconds between two checkpoints; 0: none but the last one
    checkpoint_every: float = 0.0
    #: seconds until a checkpoint that is not complete is given up
    checkpoint_timeout: float = 30.0
    #: seconds until a sub-unit no longer processes first what waits in its inbox: the checkpoint is unaligned then, and holds it
    aligned_checkpoint_timeout: float = 1.0
    #: what follows a transient error of a sink or source, as `NAME[:PARAMETER=VALUE,...]`; empty: as delivery has it
    restart_strategy: str = ""
    #: seconds without a word from a sub-unit after which its process is ended and replaced; 0: never
    heartbeat_timeout: float = 0.0
    #: latency objectives, as `esault run --objective` takes them: "p99 < 100 ms", or "UNIT=p99 < 100 ms"
    objectives: tuple[str, ...] = ()
    #: the most slots that the run may hold at any time; 0: as many as there are
    budget: int = 0
    #: ... and the most that they may cost an hour together, by `esault node --slot-price`; 0: any
    hourly_budget: float = 0.0
    #: bolts that can be run in the process of the unit before them, but those of these names
    chaining: bool = False
    unchained: tuple[str, ...] = ()
    #: seconds between two status reports
    status_every: float = 0.25
    #: and in the first moments of a sub-unit that begins with its run; 0: as later
    first_status_every: float = 0.0
    #: emits that are checked one by one before the check moves to the batch
    checked_emits: int = 1000
    #: find values that are changed after they were emitted; None: in a LocalRuntime of a test
    watch_values: bool | None = None
    #: put state through bytes every now and then, as a move would; None: in a LocalRuntime, and with --engine local
    reload_state: bool | None = None

    def __post_init__(self) -> None:
        # Between hosts a word arrives. Raises ValueError for one that is unknown.
        object.__setattr__(self, "delivery", Delivery(self.delivery))
