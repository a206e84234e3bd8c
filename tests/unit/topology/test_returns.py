"""Bolts that return their tuples instead of emitting them."""

from __future__ import annotations

import pytest

from esault.topology.examine import returned_instead_of_emitted


class Pair:
    def process(self, key, value):
        return key, value + 1


class Some:
    def process(self, key, value):
        if value:
            for word in value:
                with word:
                    return [(word, 1)]
        return None


class Value:
    async def process(self, key, value):
        return value.lower()[0]


class OutWays:
    def process(self, key, value):
        def inner():
            return key, value

        if not value:
            return None
        if key:
            return True
        return inner()


class OfItself:
    def process(self, key, value):
        return self.count + value  # type: ignore[attr-defined]


class Emits:
    def process(self, key, value):
        self.emit(key, value)  # type: ignore[attr-defined]
        return key, value


class EmitsElsewhere:
    def other(self):
        return [self.emit(row) for row in ()]  # type: ignore[attr-defined]

    def process(self, key, value):
        return key, value


@pytest.mark.parametrize(
    ("cls", "text"), [(Pair, "(key, value + 1)"), (Some, "[(word, 1)]"), (Value, "value.lower()[0]")]
)
def test_what_can_only_be_meant_for_the_engine_is_told(cls, text):
    assert returned_instead_of_emitted(cls.process, [cls]) == text


@pytest.mark.parametrize("cls", [OutWays, OfItself, Emits, EmitsElsewhere])
def test_all_else_passes(cls):
    assert returned_instead_of_emitted(cls.process, [cls]) is None


def test_what_has_no_source_passes():
    class Bare:
        pass

    space: dict = {}
    exec("def process(self, key, value):\n    return key, value", space)
    for hook in (space["process"], len, Bare, lambda self, key, value: (key, value)):
        assert returned_instead_of_emitted(hook, [Bare]) is None
