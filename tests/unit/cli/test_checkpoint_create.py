"""`esault checkpoint create` where nothing runs, and of a run elsewhere."""

from __future__ import annotations

import pytest

from esault.cli.main import main
from esault.messages.checkpoint import CompletedCheckpoint, CompletedUnit
from esault.runtime.session import control_client
from esault.state.state_dir import StateDir


def test_the_run_of_another_machine_is_asked_by_its_address(monkeypatch, capsys):
    asked = []

    def ask(place, request, **patience):
        asked.append((place.address, request["do"]))
        yield {"topology": "words", "run": "r1", "checkpoint": 7, "path": "there/last"}

    monkeypatch.setattr(control_client, "ask", ask)
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", "create", "--run", "host-b:7431", "--name", "last"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == "words: savepoint last: checkpoint 7: there/last\n"
    assert asked == [("host-b:7431", "status"), ("host-b:7431", "savepoint")]


@pytest.mark.parametrize("over", [True, False])
def test_it_says_where_no_run_can_go_on_from_what_is_kept(tmp_path, monkeypatch, capsys, over):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    (tmp_path / ".esault").mkdir()
    held = StateDir(tmp_path / ".esault" / "words")
    unit = CompletedUnit("spout", "sub-unit", 1, finished=over)
    held.keep(CompletedCheckpoint(3, "r1", {"lines": unit}, topology="words"))
    held.close()
    with pytest.raises(SystemExit) as ended:
        main(["checkpoint", "create", "words", "--name", "last"])
    said = capsys.readouterr().out
    assert (ended.value.code, "words: savepoint last: checkpoint 3" in said) == (0, True)
    assert ("no run can go on from it" in said) == over
