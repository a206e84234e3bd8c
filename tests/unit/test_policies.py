"""`esault.policies`: all that a policy of one's own needs."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from packages import install

from esault import Bolt, Topology, by_key, policies
from esault.cli.main import cli
from esault.errors import UsageError
from esault.sources import Items, Paced
from esault.testing import LocalRuntime

PACKAGE = '''
"""Made elsewhere."""
from dataclasses import dataclass
from esault.policies import Rescale


@dataclass
class Wide:
    """Three sub-units for everybody."""

    #: seconds between two looks
    period: float = 0.5

    def decide(self, view):
        return [Rescale("it is said to be wide", 3, unit=n) for n in view.managed if view.units[n].width < 3]
'''


@dataclass
class Two:
    """Two sub-units for everybody."""

    period: float = 0.5

    def decide(self, view):
        return [policies.Rescale("two", 2, unit=name) for name in view.managed if view.units[name].width < 2]


class Count(Bolt):
    def __init__(self):
        self.seen = 0

    def process(self, key, value):
        self.seen += 1
        self.emit(key, self.seen)


def topology():
    t = Topology("counted")
    t.spout("numbers", Paced(Items([(i % 50, i) for i in range(400)]), rate=100)).bolt(
        "count", Count, grouping=by_key()
    )
    return t


def width(policy):
    local = LocalRuntime(topology(), policies={"": policy})
    local.run_until_drained()
    return max(n for _, n in local.report().units["count"].parallelism)


def test_a_registered_policy_scales_a_run(name_policy):
    name_policy("two", Two)
    assert "two" in policies.names()
    assert policies.parameters("two") == {"period": 0.5}
    assert width("two:period=0.2") == 2


def test_a_policy_of_an_installed_package_scales_a_run(tmp_path, monkeypatch, capsys):
    install(tmp_path, "wide_policies", PACKAGE, "esault.policies", wide="Wide")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert width("wide") == 3
    cli.main(["policies"], standalone_mode=False)
    assert "\nwide " in capsys.readouterr().out
    cli.main(["policies", "wide"], standalone_mode=False)
    told = capsys.readouterr().out
    assert told.startswith("wide: judges all units of a topology together.\n\nMade elsewhere.")
    assert "period=0.5  seconds between two looks" in told


def test_a_package_that_cannot_be_loaded_does_not_hide_the_others(tmp_path, monkeypatch, capsys):
    install(tmp_path, "bad_policies", "import no_such_module", "esault.policies", bad="Bad")
    monkeypatch.syspath_prepend(str(tmp_path))
    cli.main(["policies"], standalone_mode=False)
    out = capsys.readouterr().out
    assert "cannot be loaded: ModuleNotFoundError" in out
    assert "\nds2 " in out


def test_the_engines_names_cannot_be_taken():
    with pytest.raises(UsageError, match="'auto' is one of the engine's own"):
        policies.register("auto", Two)


def test_all_names_are_there():
    assert policies.__all__ == sorted(policies.__all__)
    assert all(hasattr(policies, name) for name in policies.__all__)


@pytest.mark.parametrize("module", ["esault.control.elasticity", "esault.control.elasticity.policy"])
def test_the_former_place_says_where_it_is_now(module):
    with pytest.raises(ImportError, match="esault.control.elasticity is esault.policies now"):
        __import__(module)
