"""Dead letters: what is in one, where they stand, and the source that gives their tuples once more."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from esault import BatchBolt, Bolt, SourceError, Topology, by_key, dead_letter, single
from esault.cli.main import cli
from esault.messages.settings import Settings
from esault.runtime.session.dead_letters import dead_letter_paths
from esault.sinks import Collect
from esault.sources import DeadLetters, Items
from esault.sources.dead_letter_files import SENT, DeadLetterFiles
from esault.state.dead_letter_file import DeadLetterFile
from esault.testing import LocalRuntime
from esault.testing.contract import check_spout
from esault.topology.context import Context
from esault.topology.spout import EndOfStream
from esault.windows import TumblingWindow

DAY = datetime.date(2026, 11, 25)


class Odd(Bolt):
    def process(self, key, value):
        if value[0] % 2:
            raise ValueError(f"{value[0]} is odd")
        self.emit(key, value)


class Batches(BatchBolt):
    def process_batch(self, rows):
        raise ValueError("all of it")


class AtTheEnd(Bolt):
    def process(self, key, value):
        pass

    def finish(self):
        raise ValueError("no tuple")


def kept(topology, path):
    """The letters of a run, written to files as sub-units write them."""
    box = DeadLetterFile(str(path), 7)
    local = LocalRuntime(topology)
    local.run_until_drained()
    for record in local.dead_letters:
        box.put(record)
    box.sync()
    box.close()
    return local.dead_letters


def odd(path, rows=None, bolt=Odd, grouping=None):
    t = Topology("odd")
    rows = [(("k", i % 3), (i, DAY)) for i in range(10)] if rows is None else rows
    t.spout("numbers", Items(rows)).bolt("half", bolt, grouping=grouping or by_key(), on_error=dead_letter(str(path)))
    return t


def read(source, **options):
    t = Topology("again")
    t.spout("letters", source).sink("out", Collect())
    local = LocalRuntime(t, **options)
    local.run_until_drained()
    return [(row.key, row.value) for row in local.landed("out")]


class TestRecords:
    def test_a_letter_says_what_where_when_and_why(self, tmp_path):
        letters = kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        one = next(each for each in letters if each["value"][0] == 7)
        assert (one["unit"], one["hook"], one["at"], one["key"]) == ("half", "process", "input:0", ("k", 1))
        assert one["run"] == "local"
        assert one["sub_unit"] > 0
        assert one["error"] == "ValueError: 7 is odd"
        assert "7 is odd" in one["traceback"]
        assert one["time"] >= 0
        assert len({each["id"] for each in letters}) == 5

    def test_one_of_a_window_has_the_time_of_its_event(self):
        t = Topology("w")
        numbers = t.spout("numbers", Items([("k", (i, 100.0 + i)) for i in range(4)]))
        numbers.window("half", Odd, TumblingWindow(10), time=lambda value: value[1], on_error=dead_letter("d.jsonl"))
        local = LocalRuntime(t)
        local.run_until_drained()
        assert [each["event_time"] for each in local.dead_letters] == [101.0, 103.0]

    def test_one_of_a_function_step_says_which(self):
        t = Topology("s")
        numbers = t.spout("numbers", Items([(i, i) for i in range(4)]))
        numbers.map(lambda value: 1 // (value - 2), name="inverse", on_error=dead_letter("d.jsonl")).sink(
            "o", Collect()
        )
        local = LocalRuntime(t)
        local.run_until_drained()
        (letter,) = local.dead_letters
        assert (letter["at"], letter["unit"], letter["value"]) == ("step:numbers.inverse", "numbers", 2)

    def test_a_line_that_a_crash_cut_off_spoils_no_other(self, tmp_path):
        box = DeadLetterFile(str(tmp_path / "d.jsonl"), 7)
        (tmp_path / "d.7.jsonl").write_text('{"id": "a", "unit": "u"}\n{"id": "b", "un')
        box.put({"id": "c", "unit": "u"})
        box.close()
        assert [letter.id for letter in DeadLetterFiles(tmp_path / "d.jsonl").read()] == ["a", "c"]

    def test_files_of_other_names_are_no_dead_letters(self, tmp_path):
        for name in ("d.py", "d.7", "d.7.jsonl", "d.x.jsonl", "d.7.jsonl.sent"):
            (tmp_path / name).touch()
        assert DeadLetterFiles(tmp_path / "d").find() == [str(tmp_path / "d.7")]
        assert DeadLetterFiles(tmp_path / "d.jsonl").find() == [str(tmp_path / "d.7.jsonl")]

    def test_a_topology_knows_where_its_letters_are(self, tmp_path):
        t = odd(tmp_path / "d.jsonl")
        rows = t.spout("more", Items([]))
        rows.map(abs, on_error=dead_letter(str(tmp_path / "steps.jsonl"))).sink("o", Collect())
        assert dead_letter_paths(t.plan()) == [str(tmp_path / "d.jsonl"), str(tmp_path / "steps.jsonl")]


class TestDeadLetters:
    def test_it_gives_the_tuples_exactly_as_they_failed(self, tmp_path):
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        wanted = sorted((("k", i % 3), (i, DAY)) for i in (1, 3, 5, 7, 9))
        assert sorted(read(DeadLetters(tmp_path / "d.jsonl"))) == wanted

    def test_what_is_durable_is_marked_and_no_later_run_reads_it(self, tmp_path):
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        for settings in (Settings(), Settings(delivery="eo", checkpoint_every=0.1)):
            assert len(read(DeadLetters(tmp_path), settings=settings)) == 5
            assert all(letter.sent for letter in DeadLetterFiles(tmp_path).read())
            assert read(DeadLetters(tmp_path), settings=settings) == []
            (tmp_path / "d.7.jsonl.sent").unlink()

    def test_what_a_run_that_died_left_unmarked_is_marked_by_the_next(self, tmp_path):
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        name = str(tmp_path / "d.7.jsonl")
        first = DeadLetters(tmp_path).open_split(name, None)
        first.read(3)
        again = DeadLetters(tmp_path).open_split(name, first.position())
        again.read(9)
        again.commit(again.position())
        first.close()
        again.close()
        assert all(letter.sent for letter in DeadLetterFiles(tmp_path).read())

    def test_it_keeps_the_contract_of_sources(self, tmp_path):
        for number, bolt in enumerate((Odd, Batches)):
            kept(odd(tmp_path, bolt=bolt), tmp_path / f"{number}.jsonl")

        def anew():
            for name in DeadLetterFiles(tmp_path).find():
                Path(name + SENT).unlink(missing_ok=True)
            return DeadLetters(tmp_path)

        assert check_spout(anew) == 5 + 10

    def test_a_run_that_goes_back_behind_its_own_marks_reads_them_again(self, tmp_path):
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        name = str(tmp_path / "d.7.jsonl")

        def rows(position, lineage):
            source = DeadLetters(tmp_path)
            source.open(Context("letters", lineage=lineage))
            reader = source.open_split(name, position)
            try:
                return reader.read(9), reader.commit(reader.position()), reader.position()
            except EndOfStream:
                return [], None, None
            finally:
                reader.close()

        first = DeadLetters(tmp_path).open_split(name, None)
        first.read(2)
        middle = first.position()
        first.close()
        assert len(rows(middle, "a")[0]) == 3
        assert len(rows(middle, "a")[0]) == 3  # such as where a checkpoint was damaged
        assert rows(middle, "b")[0] == rows(None, "a")[0] == []

    def test_of_one_unit_or_one_error_and_none_without_a_tuple(self, tmp_path):
        kept(odd(tmp_path, bolt=AtTheEnd, grouping=single()), tmp_path / "end.jsonl")
        kept(odd(tmp_path), tmp_path / "d.jsonl")
        assert read(DeadLetters(tmp_path, unit="other")) == []
        assert read(DeadLetters(tmp_path, error="KeyError")) == []
        assert len(read(DeadLetters(tmp_path, unit="half", error="ValueError: 7"))) == 1
        reader = DeadLetters(tmp_path).open_split(str(tmp_path / "end.7.jsonl"), None)
        with pytest.raises(Exception, match="^$"):
            reader.read(5)
        reader.close()
        assert reader.counters() == {"dead_letters_without_tuple": 1}

    def test_a_path_without_letters_is_refused(self, tmp_path):
        with pytest.raises(SourceError, match="there are no dead letters"):
            DeadLetters(tmp_path / "x.jsonl").check()


class TestCommand:
    def run(self, *words):
        result = CliRunner().invoke(cli, ["deadletters", *map(str, words)])
        return result.output + str(result.exception or "")

    def test_letters_are_listed_and_shown(self, tmp_path):
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        files = DeadLetterFiles(tmp_path / "d.jsonl")
        first, *_ = letters = list(files.read())
        files.mark([first])
        said = self.run("list", tmp_path / "d.jsonl")
        assert "4 of 4 dead letters; 1 were sent again" in said
        assert "4 of half: ValueError" in said
        assert first.id not in said
        assert f"{first.id} " in self.run("list", tmp_path, "--all")
        shown = self.run("show", tmp_path, first.id[:6])
        assert "sent again" in shown
        assert "in process" in shown
        assert [json.loads(line)["id"] for line in self.run("list", tmp_path, "--json").splitlines()] == [
            each.id for each in letters[1:]
        ]

    def test_what_is_not_there_is_said(self, tmp_path):
        assert "there are no dead letters" in self.run("list", tmp_path / "no.jsonl")
        kept(odd(tmp_path / "d.jsonl"), tmp_path / "d.jsonl")
        assert "no dead letter begins with 'zz'" in self.run("show", tmp_path, "zz")
