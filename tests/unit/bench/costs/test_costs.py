from __future__ import annotations

import pytest


def test_every_change_is_one_that_a_run_takes():
    from bench.costs.__main__ import CHANGES
    from bench.kit.esault_run import setting
    from esault.messages.settings import Settings

    for change in CHANGES.values():
        Settings(**dict(setting(text) for flag, text in zip(change[::2], change[1::2]) if flag == "--set"))


def test_some_changes_are_measured_beside_the_defaults():
    from bench.costs.__main__ import CHANGES, chosen

    assert chosen(None) == CHANGES
    assert list(chosen("no probes, no policy,no linger")) == ["defaults", "no probes, no policy", "no linger"]
    with pytest.raises(SystemExit, match="there is no change speed; there are: defaults; no acks"):
        chosen("speed")
