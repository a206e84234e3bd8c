"""`esault policies`: what it tells of each policy comes from the policy's own source."""

from __future__ import annotations

import inspect
import sys
from dataclasses import dataclass, field

import pytest

from esault.cli.main import main
from esault.cli.policies import comments, docstring
from esault.elasticity.policy import DEFAULT, POLICIES, make, parameters


def call(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["policies", *arguments])
    out = capsys.readouterr()
    return ended.value.code, out.out, out.err


@dataclass
class Base:
    #: seconds between two looks
    period: float = 1.0
    #: which
    #: one
    kind: str = field(default="first", metadata={"choices": ("first", "second")})


@dataclass
class Whole(Base):
    """Looks at everything.

    And says why.
    """

    #: not twice
    once: bool = True
    silent: int = 3

    def decide(self, view):
        return ()


class Plain:
    """No dataclass."""

    probe_period = None


@pytest.fixture
def whole(name_policy):
    name_policy("whole", Whole)
    name_policy("again", Plain)


def test_all_are_listed_with_a_line_each_and_the_default_is_marked(capsys):
    code, out, _ = call(capsys)
    assert code == 0
    heads = [line.split("  ")[0] for line in out.split("\n\n")[0].splitlines()]
    assert heads == [f"{DEFAULT} (default)", *[n for n in POLICIES.names() if n != DEFAULT], "none"]
    assert all(line.split("  ", 1)[1].strip() for line in out.split("\n\n")[0].splitlines())


@pytest.mark.parametrize("name", POLICIES.own)
def test_one_is_explained_in_full(name, capsys):
    code, out, _ = call(capsys, name)
    assert code == 0
    assert docstring(name) in out
    for parameter in parameters(name):
        assert f"\n  {parameter}=" in out
    spec = out.strip().splitlines()[-1].removeprefix("Example: esault run words.py --policy ")
    assert spec.startswith(name)
    assert make(spec) is not None  # the example can be copied


def test_a_module_of_one_policy_speaks_for_it_and_its_class_for_the_parameters(capsys):
    assert docstring("probe") == inspect.getdoc(sys.modules["esault.elasticity.policies.probe"])
    assert "\n\nParameters in seconds and shares.\n\nParameters and defaults:\n" in call(capsys, "probe")[1]


def test_the_signature_that_a_dataclass_is_given_is_no_docstring(name_policy):
    name_policy("base", Base)
    assert docstring("base") == ""


def test_parameters_have_defaults_comments_and_choices(whole, capsys):
    _, out, _ = call(capsys, "whole")
    assert out.startswith("whole: judges all units of a topology together.\n\nLooks at everything.\n\nAnd says why.\n")
    rows = [line.split(maxsplit=1) for line in out.splitlines() if line.startswith("  ")]
    assert rows == [
        ["period=1", "seconds between two looks"],
        ["kind=first", "which one; one of: first, second"],
        ["once=true", "not twice"],
        ["silent=3"],
    ]
    assert call(capsys, "probe")[1].startswith("probe: judges one unit.")
    assert call(capsys, DEFAULT)[1].startswith(f"{DEFAULT}, the default: judges all units of a topology together.")


def test_a_policy_may_have_no_parameters(whole, capsys):
    code, out, _ = call(capsys, "again")
    assert code == 0
    assert out == (
        "again: judges one unit.\n\nNo dataclass.\n\nIt has no parameters.\n\nExample: esault run words.py --policy again\n"
    )


def test_without_source_there_are_no_comments(capsys, monkeypatch):
    space = {}
    exec("class Typed:\n    #: unseen\n    d: float = 1.0\n", space)
    assert comments(space["Typed"]) == {}
    assert comments(int) == {}

    def gone(made):
        raise OSError("could not get source code")

    monkeypatch.setattr(inspect, "getsource", gone)
    code, out, _ = call(capsys, "probe")
    assert code == 0
    assert "  target=0.65\n" in out


def test_none_is_explained_too(capsys):
    assert "--policy none" in call(capsys, "none")[1]


def test_an_unknown_name_names_those_that_there_are(capsys):
    code, _, err = call(capsys, "prob")
    assert code == 2
    assert "there is no policy 'prob'; there are: auto" in err
