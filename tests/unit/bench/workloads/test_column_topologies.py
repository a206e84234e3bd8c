"""What the column benches measure is the same work in each kind."""

from __future__ import annotations

from collections import Counter

import pytest

from bench.workloads import column_topologies
from bench.workloads.loads import make, read
from esault.testing import LocalRuntime


@pytest.mark.parametrize("kind", ["rows", "columns"])
def test_partial_counts_add_up_to_the_words(tmp_path, kind):
    load = make("sentences", 50, tmp_path)
    local = LocalRuntime(column_topologies.partial(str(load.path), 2, str(tmp_path / "out"), kind, 2))
    local.run_until_drained()
    want = Counter(word for _, line in read(str(load.path)) * 2 for word in line.split())
    found: Counter[str] = Counter()
    for word, total in local.emitted("count"):
        found[word] = max(found[word], total)
    assert found == want


def test_sums_are_the_same_of_rows_and_of_arrays(tmp_path, monkeypatch):
    monkeypatch.setattr(column_topologies, "DISTINCT", 4096)
    found = []
    for kind in ("rows", "numpy", "arrow"):
        local = LocalRuntime(column_topologies.numbers("10", 2, str(tmp_path / "out"), kind, 2))
        kept = {}
        while local.driver.phase != "ended":
            for seat in local.sub_units("sum"):
                if local.lives(seat):
                    kept.update(local._processes[seat].core.operator.object.keyed)
            if not local.step():
                local.wait()
        assert sum(n for _, n in local.emitted("sum")) == 8192
        found.append({key: round(total, 6) for key, total in kept.items()})
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == 10
