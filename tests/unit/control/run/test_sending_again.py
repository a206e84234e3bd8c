"""Dead letters that are sent into the running topology again."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter

import depth
import pytest

from esault import Bolt, Topology, UsageError, by_key, dead_letter, shuffle
from esault.control.run.sending_again import Resend
from esault.messages.settings import Settings
from esault.runtime.run_commands import Running, parse
from esault.sinks import Collect
from esault.sources import Items, Paced
from esault.testing import LocalRuntime

RULE = {"odd": True}


class Odd(Bolt):
    """Refuses odd numbers until it is told otherwise, and counts by key."""

    def __init__(self):
        self.count = 0

    def process(self, key, value):
        if RULE["odd"] and value % 2:
            raise ValueError(f"{value} is odd")
        self.count += 1
        self.emit(key, value)


def inverse(value):
    if RULE["odd"] and value % 5 == 0:
        raise ZeroDivisionError("no inverse")
    return value


def topology(rows, **options):
    t = Topology("t")
    numbers = t.spout("in", Paced(Items(rows), rate=100)).map(inverse, name="inverse", on_error=dead_letter("d.jsonl"))
    numbers.bolt("odd", Odd, on_error=dead_letter("d.jsonl"), **options).sink("out", Collect())
    return t


@pytest.fixture(autouse=True)
def rule():
    RULE["odd"] = True
    yield
    RULE["odd"] = False


ROWS = [(i % 7, i) for i in range(300)]
KINDS = [
    {"grouping": by_key(), "parallelism": 2},
    {"grouping": shuffle()},
    {"grouping": shuffle(), "chained": True},
]


def until_answered(local, then):
    said = []

    def answered():
        found = None if said else then()
        if found is not None:
            said.append(found)
        return bool(said)

    local.run_until(answered, 60)
    return said[0]


def ask(local, records):
    words = json.dumps([[r["id"], r["unit"], r["at"], r["packed"], *([r] if "run" in r else [])] for r in records])
    answer = parse({"do": "send_again", "dead_letters": words}).carry_out(Running(local.driver, {}), local.now())
    return answer.then


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("settings", [{}, {"delivery": "eo", "checkpoint_every": 0.5}])
def test_each_goes_to_where_it_failed_and_comes_out_once(kind, settings):
    chained = kind.get("chained", False)
    options = {name: value for name, value in kind.items() if name != "chained"}
    local = LocalRuntime(topology(ROWS, **options), settings=Settings(chaining=chained, **settings))
    local.run_for(1.5)
    RULE["odd"] = False
    records = local.dead_letters
    assert {record["at"] for record in records} == {"input:0", "step:in.inverse"}
    said = until_answered(local, ask(local, records))
    assert sorted(said["sent"]) == sorted(record["id"] for record in records)
    assert said["refused"] == {}
    if settings:
        assert local.driver.completed.number > 0
    local.run_until_drained()
    assert sorted(row.value for row in local.landed("out")) == [value for _, value in ROWS]
    assert local.report().roots.acked == local.report().roots.emitted


def test_one_that_fails_again_is_a_new_one():
    local = LocalRuntime(topology(ROWS[:200], grouping=by_key()))
    local.run_for(1.0)
    before = local.dead_letters
    until_answered(local, ask(local, before[:3]))
    again = local.dead_letters[len(before) :]
    assert {r["value"] for r in before[:3]} <= {r["value"] for r in again}
    assert not {r["id"] for r in before} & {r["id"] for r in again}


def test_where_a_process_died_meanwhile_it_is_said_and_not_taken_for_sent():
    local = LocalRuntime(topology(ROWS, grouping=by_key()), settings=Settings(delivery="eo", checkpoint_every=5))
    local.run_for(1.0)
    RULE["odd"] = False
    then = ask(local, local.dead_letters[:4])
    local.run_for(0.3)
    assert then() is None  # no checkpoint is complete yet
    local.kill(local.sub_units("odd")[0])
    said = until_answered(local, then)
    assert said["sent"] == []
    assert all("send it again" in why for why in said["refused"].values())
    assert len(said["refused"]) == 4


@pytest.mark.parametrize("seed", range(depth.of(100)))
def test_each_counts_once_whenever_all_go_back(seed):
    order = random.Random(seed)
    settings = Settings(delivery="eo", checkpoint_every=0.2)
    local = LocalRuntime(topology(ROWS, grouping=by_key(), parallelism=2), seed=seed, settings=settings)
    local.run_for(0.9)
    letters = local.dead_letters
    # Those of rows that would be read again are undone with what they failed of.
    behind = local.driver.checkpoints.last_begun
    local.run_until(lambda: local.driver.completed is not None and local.driver.completed.number > behind)
    RULE["odd"] = False
    left, restored = {letter["id"]: letter for letter in letters}, 0
    while left:
        then = ask(local, list(left.values()))
        local.run_for(order.uniform(0.0, 0.5))
        living = [each for each in local.sub_units("odd") if local.lives(each)]
        if order.random() < 0.7 and living and local.driver.completed.number > restored:
            restored = local.driver.completed.number  # else it gives up
            local.kill(living[0])
        for id in until_answered(local, then)["sent"]:
            del left[id]
        local.run_until(lambda: local.driver.phase == "running")
    local.run_until_drained()
    found = Counter(row.value for row in local.landed("out"))
    assert {found[letter["value"]] for letter in letters} == {1}
    assert set(found.values()) == {1}


def test_one_whose_tuple_comes_again_by_itself_is_not_sent():
    """Its file was read before that was noted there."""
    local = LocalRuntime(topology(ROWS, grouping=by_key()), settings=Settings(delivery="eo", checkpoint_every=0.5))
    local.run_for(1.0)
    before = local.dead_letters
    local.run_until(lambda: len(local.dead_letters) > len(before) + 5)
    letters, restored = local.dead_letters, local.driver.completed.number
    undone = {letter["id"] for letter in letters if letter["checkpoint"] >= restored}
    assert undone and len(undone) < len(letters)
    RULE["odd"] = False
    local.kill(local.sub_units("odd")[0])
    local.run_until(lambda: local.driver.epoch > 1 and local.driver.phase == "running")
    said = until_answered(local, ask(local, letters))
    assert set(said["refused"]) == undone
    assert set(said["refused"].values()) == {"all went back to a checkpoint before it: its tuple comes again by itself"}
    local.run_until_drained()
    assert sorted(row.value for row in local.landed("out")) == [value for _, value in ROWS]


def test_what_cannot_be_sent_is_said_of_each():
    local = LocalRuntime(topology(ROWS, grouping=by_key()))
    local.run_for(1.0)
    packed = local.dead_letters[0]["packed"]
    those = [
        ("a", "nowhere", "input:0", packed),
        ("b", "odd", "input:7", packed),
        ("c", "in", "step:in.other", packed),
        ("d", "odd", "input:0", base64.b64encode(b"\x00\xc1").decode()),
    ]
    said = until_answered(local, ask(local, [dict(zip(("id", "unit", "at", "packed"), each)) for each in those]))
    assert said["sent"] == []
    assert "there is no unit 'nowhere'" in said["refused"]["a"]
    assert "no input 7" in said["refused"]["b"]
    assert "no such place" in said["refused"]["c"]
    assert "cannot be read" in said["refused"]["d"]


def test_a_run_that_has_ended_takes_none():
    local = LocalRuntime(topology(ROWS[:5], grouping=by_key()))
    local.run_until_drained()
    with pytest.raises(UsageError, match="is not running"):
        local.driver.commands.sending_again.ask([Resend("a", "odd", "input:0", b"")])


@pytest.mark.parametrize(("continues", "refuses"), [(None, False), (("before", 0), True), (("another", 0), False)])
def test_one_of_an_earlier_run_is_refused_only_where_this_one_goes_on_with_that(continues, refuses):
    settings = Settings(delivery="eo", checkpoint_every=0.5)
    local = LocalRuntime(topology(ROWS, grouping=by_key()), settings=settings, run="now", continues=continues)
    local.run_for(1.0)
    letters = [{**each, "run": "before", "epoch": 1} for each in local.dead_letters]
    local.kill(local.sub_units("odd")[0])
    local.run_until(lambda: local.driver.epoch > 1 and local.driver.phase == "running")
    RULE["odd"] = False
    said = until_answered(local, ask(local, letters[-3:]))
    assert bool(said["refused"]) == refuses
