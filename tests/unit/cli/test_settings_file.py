"""Options from esault.toml and the environment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from esault.cli.main import main

TOPOLOGY = """
from esault import Bolt, Topology, by_key
from esault.sources import Items


class Same(Bolt):
    def process(self, key, value):
        self.emit(key, value)


def topology():
    t = Topology("told")
    t.spout("rows", Items([("a", 1)])).bolt("same", Same, grouping=by_key())
    return t
"""


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "told.py").write_text(TOPOLOGY)

    def called(*arguments, **told):
        if "toml" in told:
            Path("esault.toml").write_text(told["toml"])
        with pytest.raises(SystemExit) as ended:
            main(list(arguments))
        said = capsys.readouterr()
        return ended.value.code or 0, said.out, said.err

    return called


def test_a_file_says_options_of_a_run_and_the_command_line_says_them_last(call):
    toml = '[run]\nengine = "local"\nreport = "one.json"\nchaining = true\n'
    assert call("run", "told.py", toml=toml)[0] == 0
    assert json.loads(Path("one.json").read_text())["engine"] == "local"
    assert call("run", "told.py", "--report", "two.json")[0] == 0
    assert Path("two.json").exists()


def test_a_unit_that_is_fixed_on_the_command_line_has_what_the_file_says_of_it_left_out(call):
    toml = '[run]\nengine = "local"\nparallelism = "same=3"\npolicy = "same=probe"\n'
    assert call("run", "told.py", "--fixed", "same=2", "--report", "r.json", toml=toml)[0] == 0
    assert json.loads(Path("r.json").read_text())["units"]["same"]["parallelism"][0][1] == 2
    code, _, err = call("run", "told.py", toml=f'{toml}fixed = "same=2"\n')
    assert (code, "is fixed at 2, and parallelism says 3" in err) == (2, True)


def test_numbers_stand_for_texts_and_texts_for_numbers(call):
    toml = '[run]\nengine = "local"\nmetrics = 0\nseconds = "5"\nui-tls = ["a", "b"]\nchaining = "no"\nslots = "9"\n'
    _, out, err = call("check", "told.py", "--settings", toml=toml)
    assert [line.partition(" (")[0] for line in out.splitlines() if line.startswith("setting: ")] == [
        "setting: --engine local",
        "setting: --slots 9",
        "setting: --chaining False",
        "setting: --seconds 5.0",
        "setting: --metrics 0",
        "setting: --ui-tls a b",
    ], err


def test_where_each_comes_from_is_shown(call, monkeypatch):
    monkeypatch.setenv("ESAULT_RUN_SLOTS", "3")
    _, out, _ = call("check", "told.py", "--settings", toml='[run]\ncheckpoint = 2\npolicy = "none"\nslots = 9\n')
    assert "setting: --checkpoint 2.0 (esault.toml)" in out
    assert "setting: --policy none (esault.toml)" in out
    assert "setting: --slots 3 (ESAULT_RUN_SLOTS)" in out
    monkeypatch.delenv("ESAULT_RUN_SLOTS")
    assert "are at their defaults" in call("check", "told.py", "--settings", toml="")[1]


def test_a_parameter_of_the_topology_can_be_a_variable(call, monkeypatch):
    """Its option has another name in the code, which is none to people."""
    monkeypatch.setenv("ESAULT_RUN_SET", "nothing=1")
    code, _, err = call("run", "told.py")
    assert code == 2 and "there is no parameter 'nothing'" in err
    _, out, _ = call("check", "told.py", "--settings")
    assert "setting: --set nothing=1 (ESAULT_RUN_SET)" in out
    monkeypatch.delenv("ESAULT_RUN_SET")
    monkeypatch.setenv("ESAULT_RUN_SE", "1")
    assert "did you mean ESAULT_RUN_SET?" in call("run", "told.py")[2]


@pytest.mark.parametrize(
    ("toml", "says"),
    [
        ("[run]\ncheckpont = 1\n", "[run] has no option 'checkpont'; did you mean checkpoint?"),
        ("[runs]\ncheckpoint = 1\n", "[runs] is no command"),
        ("checkpoint = 1\n", "[checkpoint] is no command"),
        ("[run\n", "esault.toml: "),
        ("[run]\ncheckpoint = true\n", "[run] checkpoint: true will not do; it takes a number"),
        ("[run]\nslots = 2.5\n", "[run] slots: 2.5 will not do; it takes a whole number"),
        ("[run]\nchaining = 0\n", "[run] chaining: 0 will not do; it takes true or false"),
        ("[run]\nstate = false\n", "[run] state: false will not do; it takes text"),
        ("[run]\nseconds = 2026-01-01\n", "seconds: datetime.date(2026, 1, 1) will not do; it takes a number"),
        ("[run]\nparallelism = {same = 4}\n", "{'same': 4} will not do; it takes text, or a list of texts"),
        ("[run]\nengine = ['local']\n", "['local'] will not do; it takes text"),
        ("[run]\nslots = 'many'\n", "'many' is not a valid integer"),
    ],
)
def test_what_is_wrong_in_it_is_said(call, toml, says):
    code, _, err = call("run", "told.py", toml=toml)
    assert code == 2 and says in err, err


@pytest.mark.parametrize(
    "variable, says",
    [
        ("ESAULT_RUN_CHEKPOINT", "has no such option; did you mean ESAULT_RUN_CHECKPOINT?"),
        ("ESAULT_RUN_X", "has no such option: `esault run --help` lists them"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_variable_that_names_no_option_of_a_run_is_refused(call, monkeypatch, command, variable, says):
    """A run without checkpoints would have been the answer to a slip of the pen."""
    monkeypatch.setenv(variable, "1")
    code, _, err = call(command, "told.py")
    assert code == 2 and variable in err and says in err
    monkeypatch.delenv(variable)
    monkeypatch.setenv("ESAULT_NODE_ADDRESS", "10.0.0.2")  # as units of systemd have it
    assert call("check", "told.py")[0] == 0


def test_a_file_is_utf_8_and_one_that_is_not_is_refused(call):
    Path("esault.toml").write_bytes('[run]\nreport = "größe.json"\n'.encode("latin-1"))
    code, _, said = call("run", "told.py")
    assert code == 2
    assert "esault.toml: 'utf-8' codec can't decode" in said
    Path("esault.toml").write_bytes('[run]\nengine = "local"\nreport = "größe.json"\n'.encode())
    assert call("run", "told.py")[0] == 0
    assert Path("größe.json").exists()


def test_a_value_that_will_not_do_is_named_with_the_place_where_it_stands(call, monkeypatch):
    code, _, err = call("run", "told.py", toml='[run]\ncheckpoint = "soon"\n')
    assert code == 2
    assert "'--checkpoint': 'soon' is not a valid float ([run] of esault.toml)" in err
    monkeypatch.setenv("ESAULT_RUN_CHECKPOINT", "later")
    assert "'later' is not a valid float (ESAULT_RUN_CHECKPOINT in the environment)" in call("run", "told.py")[2]
    assert "'now' is not a valid float.\n" in call("run", "told.py", "--checkpoint", "now")[2]
