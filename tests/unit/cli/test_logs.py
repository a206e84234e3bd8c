"""`esault logs` and `esault list`, of folders as detached runs leave them."""

from __future__ import annotations

import json
import logging

import pytest
from click.testing import CliRunner

from esault.cli import list as list_command
from esault.cli import logs
from esault.errors import UsageError
from esault.runtime.process.owner import Owner
from esault.runtime.session import detached
from esault.runtime.session.detached import DetachedRun, detached_runs


def line(text, unit="count", number=2, **more):
    about = {"time": "T", "level": "warning", "logger": "words", "message": text, "unit": unit, "sub_unit": number}
    return json.dumps({**about, **more}) + "\n"


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("esault.runtime.session.control_client.running", list)

    def make(name, **about):
        folder = tmp_path / "esault" / "runs" / name
        folder.mkdir(parents=True)
        made = DetachedRun(folder)
        made.say(
            **{
                "topology": "words",
                "run": f"{name}-ab",
                "pid": 1,
                "born": -1.0,
                "command": ["run", "words.py"],
                **about,
            }
        )
        (folder / "log").write_text("")
        return made

    return make


def shown(*arguments):
    done = CliRunner().invoke(logs.command, list(arguments))
    if done.exception is not None:
        raise done.exception
    return done.output.splitlines()


class TestLogs:
    def test_files_that_were_put_away_come_first_the_oldest_before_the_others(self, runs):
        folder = runs("1").folder
        for name, text in (("log", "four"), ("log.1", "three"), ("log.2", "two"), ("log.5", "one")):
            (folder / name).write_text(line(text))
        assert shown() == [f"T [count/2] WARNING words: {text}" for text in ("one", "two", "three", "four")]

    def test_of_one_unit_and_the_newest_alone(self, runs):
        folder = runs("1").folder
        (folder / "log").write_text(line("a") + line("b", unit="split") + line("c") + line("d"))
        assert shown("--unit", "count", "--lines", "2") == [
            "T [count/2] WARNING words: c",
            "T [count/2] WARNING words: d",
        ]

    def test_what_was_printed_has_no_level_and_a_traceback_follows(self, runs):
        folder = runs("1").folder
        (folder / "log").write_text(line("hello", logger="print") + line("bad", exception="Traceback ..."))
        assert shown() == ["T [count/2] hello", "T [count/2] WARNING words: bad", "Traceback ..."]

    def test_as_it_is_kept(self, runs):
        (runs("1").folder / "log").write_text(line("a"))
        assert [json.loads(each)["message"] for each in shown("--json")] == ["a"]

    def test_a_line_that_is_being_written_is_left_for_later(self, runs):
        (runs("1").folder / "log").write_text(line("a") + line("b")[:20])
        assert len(shown()) == 1

    @pytest.mark.parametrize("name, found", [(None, "2"), ("words", "2"), ("1-a", "1")])
    def test_the_newest_or_the_one_that_is_named(self, runs, name, found):
        for each in ("1", "2"):
            (runs(each).folder / "log").write_text(line(each))
        assert shown(*([] if name is None else [name])) == [f"T [count/2] WARNING words: {found}"]
        assert shown(*([] if name is None else ["--run", name])) == [f"T [count/2] WARNING words: {found}"]

    def test_one_that_is_not_there_is_refused_with_those_that_are(self, runs):
        with pytest.raises(UsageError, match="begun with `esault run --detach`"):
            shown()
        runs("1")
        with pytest.raises(UsageError, match="named 'other'; there are: words"):
            shown("other")

    def test_following_goes_over_to_the_next_file_and_ends_with_the_run(self, runs, monkeypatch):
        run = runs("1")
        path = run.folder / "log"
        path.write_text(line("a"))

        def add(text):
            with path.open("a") as file:
                file.write(line(text))

        steps = iter(
            [
                lambda: add("b"),
                lambda: (add("c"), path.rename(run.folder / "log.1"), path.write_text(line("d"))),
            ]
        )  # fmt: skip
        alive = [True]

        def sleep(seconds):
            step = next(steps, None)
            if step is None:
                alive[0] = False
            else:
                step()

        monkeypatch.setattr("esault.cli.logs.time.sleep", sleep)
        monkeypatch.setattr(DetachedRun, "alive", property(lambda self: alive[0]))
        assert [text[-1] for text in shown("--follow")] == ["a", "b", "c", "d"]


class TestList:
    def listed(self):
        done = CliRunner().invoke(list_command.command, ["--json"])
        return {each["run"]: each["state"] for each in map(json.loads, done.output.splitlines())}

    def test_it_says_how_each_ended(self, runs):
        here = Owner.current()
        runs("1", ended="drained")
        runs("2")
        runs("3", pid=here.pid, born=here.start_time)
        runs("4", pid=here.pid, born=here.start_time, run="")
        assert self.listed() == {"1-ab": "drained", "2-ab": "killed", "3-ab": "running", "": "starting"}

    def test_nothing_is_said_in_words(self, runs):
        assert "`esault run --detach` begins one" in CliRunner().invoke(list_command.command, []).output

    def test_the_folders_of_old_runs_go(self, runs, monkeypatch):
        monkeypatch.setattr(detached, "KEEP", 2)
        here = Owner.current()
        runs("0", pid=here.pid, born=here.start_time)
        for i in range(1, 5):
            runs(str(i), ended="drained")
        detached._forget_old()
        assert [each.folder.name for each in detached_runs()] == ["0", "3", "4"]


def test_a_log_is_rotated(tmp_path, monkeypatch):
    from esault.runtime.process import log_output

    monkeypatch.setattr(log_output, "ROTATE_AT", 500)
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.root, "level", logging.WARNING)
    handler = log_output.configure_file("warning", str(tmp_path / "log"))
    for i in range(40):
        log_output.say(handler, "esault.run", f"line {i}")
    handler.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", *(f"log.{i}" for i in range(1, 6))]
