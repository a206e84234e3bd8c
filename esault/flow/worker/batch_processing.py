"""Processing in batches: a batch from the inbox goes through the user's objects in each turn."""

from __future__ import annotations

import math

from esault.flow.channel.lineage import Lineage
from esault.flow.checkpoint.state_writer import SNAPSHOT_TURN
from esault.flow.handover.divide import Entry, cut, in_rows
from esault.flow.operators.operator import Operator
from esault.flow.worker.bolt_unit import BoltSubUnit
from esault.routing.many_keys import names_of

__all__ = ["BatchProcessing"]

#: seconds that user code may take in one turn, if its rows can be divided so
LONGEST_TURN = 0.02
#: rows that must fit into that for user code to count as quick: those of a full frame
SLOW_ROWS = 512
#: where user code is slow, writing state takes this share of its time: else a checkpoint would need thousands of its tuples
SNAPSHOT_SHARE = 0.1
#: rows of the first turn: each of them may take seconds
FIRST_ROWS = 4


class BatchProcessing:
    """Processes the next batch, or as much of it as may take one turn."""

    #: ticks wait for nothing but their time
    holds_ticks = False

    def __init__(self, bolt: BoltSubUnit) -> None:
        self._bolt = bolt
        #: rows that are processed in one turn at most; 0: any number. The first ones show how long a row takes.
        self._most_rows = FIRST_ROWS
        self._several = len(bolt.plan.inputs) > 1
        #: state goes through bytes after some batches; how many there were
        self._reload = bool(bolt.settings.reload_state)
        self._turns = 0

    def prepare(self, operator: Operator) -> None:
        """Do nothing: it is ready."""

    def next(self, now: float, more: bool) -> bool:
        """Process the next batch, and return whether there is, or was before (`more`), something to do at once."""
        bolt = self._bolt
        reader, metrics = bolt.reader, bolt.metrics
        if not reader.inbox:
            bolt.check_ended()
            return bolt.keep_bound(now, 0) or more or bolt.writer.snapshot is not None
        if bolt.rate_limit.cap is not None:
            most = bolt.rate_limit.allowed(now, self._most_rows or max(1, len(reader.inbox[0].batch.keys)))
            if not most:
                return more or bolt.writer.snapshot is not None
            self._most_rows = most
        entry = reader.inbox.popleft()
        if self._most_rows and len(entry.batch.keys) > self._most_rows:
            entry = self._slice(entry)
        else:
            reader.taken += 1
        sent, batch, taken = entry
        if (type(batch.keys) is not tuple or type(batch.values) is not tuple) and not bolt.operator.takes_arrays:
            batch = in_rows(batch)
        count = len(batch.keys)
        reader.backlog -= count
        if bolt.key_load.room and batch.input in bolt.sampled:
            bolt.key_load.sample(batch.keys)
        lineage = Lineage(batch.root, batch.due)
        ids = batch.ids
        if ids is not None and self._several:
            # A row may come here by two ways, such as through either side of a diamond: what it brings forth is two rows.
            ids = tuple([f"{id}/{batch.input}" for id in ids])
        if self._several:
            bolt.operator.input = batch.input
        writer = bolt.writer
        if writer.snapshot is not None or writer.dirty is not None:
            # What rows that go to all sub-units change stands under no key.
            touched = (None,) if batch.input in bolt.to_all else names_of(batch.keys) if bolt.seen_changes else ()
            writer.process(touched)
        bolt.operator.run(batch.input, batch.keys, batch.values, ids)
        if bolt.bounded:
            bolt.keep_bound(now, count)
        if self._reload:
            self._turns += 1
            if not self._turns & (self._turns - 1):  # the first, second, fourth, eighth ...
                bolt.operator.reload(() if batch.input in bolt.to_all else batch.keys)
        emitter, outputs = bolt.emitter, bolt.outputs
        if emitter.arrays:
            bolt.emit_payload(lineage, emitter.pop_emitted(bolt.plan.wants_id))
        for stream, out in emitter.outs.items():
            keys = out.keys
            if keys:
                metrics.tuples_out += len(keys)
                if bolt.observer is not None:
                    bolt.observer(bolt.plan.name, stream, keys, out.values)
                ids = out.ids.copy() if batch.ids is not None else None
                outputs.push(stream, lineage, tuple(keys), tuple(out.values), ids, now)
                keys.clear()
                out.values.clear()
                out.ids.clear()
        if bolt.tracked:
            bolt.acks.add(batch.root, lineage.p if taken else batch.id ^ lineage.p, batch.id ^ lineage.d)
        metrics.tuples_in += count
        done = bolt.clock()
        metrics.busy += done - now
        if writer.snapshot is not None:
            bolt.snapshot_turn = max(SNAPSHOT_TURN, (done - now) * SNAPSHOT_SHARE)
        # Slow user code must not keep control, probes and changes waiting for a whole batch of it.
        each = (done - now) / count if count else 0.0
        most = max(1, int(LONGEST_TURN / each)) if each * SLOW_ROWS > LONGEST_TURN else 0
        if outputs.sinks and (taken_by_sinks := outputs.sinks.most_rows(count)):
            most = min(most or taken_by_sinks, taken_by_sinks)
        self._most_rows = most
        metrics.durations.latency.record(done - sent, count)
        if metrics.leaf:
            metrics.durations.end_to_end.record(done - batch.due, count)
        return True

    def _slice(self, entry: Entry) -> Entry:
        """Return the first rows of a batch; the rest stays first in the inbox."""
        bolt = self._bolt
        first, rest = cut(entry, self._most_rows, bolt.random, bolt.acks if bolt.tracked else None)
        bolt.reader.inbox.appendleft(rest)
        return first

    def wake_at(self) -> float:
        """Return when the rate limit lets more through."""
        bolt = self._bolt
        cap = bolt.rate_limit.cap
        return math.inf if cap is None or not bolt.reader.inbox or bolt.resting else cap.wake_at

    def close_objects(self) -> None:
        """Call `close` on the user's objects."""
        self._bolt.operator.close()
        self._bolt.operator.close_shared()

    def cancel(self) -> None:
        """Do nothing: no call waits."""
