"""Records that were undone: written behind a checkpoint that all went back to, before they did."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from esault.payload.undone import Undone, restore_note
from esault.state.last_run import LastRun, continued

record = st.fixed_dictionaries(
    {
        "run": st.sampled_from("abcd"),
        "lineage": st.sampled_from("xy"),
        "epoch": st.integers(1, 4),
        "checkpoint": st.integers(0, 4),
        "time": st.integers(0, 5).map(float),
    }
)
#: run -> the run that it goes on with, and from which checkpoint
BEFORE = {"a": None, "b": ("a", 2), "c": ("b", 3), "d": None}


def told(run, lineage, epoch, number, time, older):
    made = restore_note(run, lineage, epoch, number, time, BEFORE[run])
    if older:
        del made["continues"]
    return made


note = st.builds(
    told,
    st.sampled_from("abcd"),
    st.sampled_from("xy"),
    st.integers(1, 4),
    st.integers(0, 4),
    st.integers(0, 5).map(float),
    st.booleans(),
)


def written(run="a", lineage="x", epoch=1, checkpoint=3, time=10.0):
    return {"run": run, "lineage": lineage, "epoch": epoch, "checkpoint": checkpoint, "time": time}


def after(*notes):
    found = Undone()
    assert all(found.note(each) for each in notes)
    return found


def test_what_came_behind_the_checkpoint_is_undone():
    undone = after(restore_note("a", "x", 2, 3, 20.0))
    assert written(checkpoint=3) in undone and written(checkpoint=4) in undone
    assert written(checkpoint=2) not in undone


def test_what_is_written_after_going_back_stays():
    undone = after(restore_note("a", "x", 2, 3, 20.0))
    assert written(epoch=2) not in undone and written(epoch=3, time=1.0) not in undone


def test_of_another_run_the_clock_decides():
    undone = after(restore_note("b", "x", 1, 3, 20.0, ("a", 3)))
    assert written(time=19.0) in undone and written(time=20.0) in undone and written(time=21.0) not in undone


def test_another_lineage_goes_its_own_way():
    assert written(lineage="y") not in after(restore_note("a", "x", 2, 0, 20.0))


def test_records_without_a_checkpoint_and_other_things_are_never_undone():
    undone = after(restore_note("a", "x", 2, 0, 20.0))
    for each in ({}, {"lineage": "x"}, {"checkpoint": "3", "lineage": "x"}, None, 7, "text", [written()]):
        assert each not in undone


def test_a_record_is_no_note():
    found = Undone()
    assert not found.note(written()) and not found.note({})
    assert written() not in found


@given(st.lists(note, max_size=4), record, note)
def test_one_more_note_brings_nothing_back(notes, record, more):
    if record in after(*notes):
        assert record in after(*notes, more) and record in after(more, *reversed(notes))


def test_a_run_that_began_anew_undoes_nothing_of_the_runs_before_it():
    undone = after(restore_note("b", "x", 2, 0, 20.0))
    assert written() not in undone and written(run="b") in undone


def test_a_run_that_goes_on_undoes_what_the_run_before_wrote_behind_the_checkpoint():
    undone = after(restore_note("b", "x", 1, 3, 20.0, ("a", 3)))
    assert written(checkpoint=3) in undone and written(checkpoint=2) not in undone


def test_one_that_goes_on_with_a_run_that_began_anew_leaves_those_before_that():
    undone = after(restore_note("c", "x", 1, 1, 20.0, ("b", 1)), restore_note("c", "x", 2, 1, 30.0, ("b", 1)))
    assert written() not in undone
    assert written(run="b", checkpoint=1) in undone and written(run="b", checkpoint=0) not in undone
    assert written(run="c", time=25.0) in undone


def test_one_that_goes_on_with_a_run_that_had_no_checkpoint_undoes_all_of_it():
    undone = after(restore_note("b", "x", 1, 0, 20.0, ("a", 0)))
    assert written(checkpoint=0) in undone and written(checkpoint=4) in undone


def test_where_a_damaged_checkpoint_takes_a_run_behind_its_begin_runs_further_before_lose_theirs():
    notes = [restore_note("b", "x", 1, 3, 20.0, ("a", 3)), restore_note("c", "x", 1, 5, 30.0, ("b", 5))]
    assert written(checkpoint=2) not in after(*notes)
    assert written(checkpoint=2) in after(*notes, restore_note("c", "x", 2, 2, 40.0, ("b", 5)))


def test_going_back_to_a_savepoint_undoes_runs_that_went_on_from_behind_it():
    """The savepoint was checkpoint 2 of run a, and is checkpoint 9 here."""
    notes = [restore_note("b", "x", 1, 4, 20.0, ("a", 4)), restore_note("c", "x", 1, 9, 30.0, ("a", 2))]
    undone = after(*notes)
    assert written(run="b", checkpoint=5, time=25.0) in undone
    assert written(checkpoint=2) in undone and written(checkpoint=1) not in undone


def test_going_back_to_a_savepoint_leaves_runs_that_went_on_from_before_it():
    """What run b read behind checkpoint 2 of run a, and before 6, is not read again, and its checkpoints do not tell which that was."""
    notes = [restore_note("b", "x", 1, 9, 20.0, ("a", 2)), restore_note("c", "x", 1, 15, 30.0, ("a", 6))]
    assert written(run="b", checkpoint=12, time=25.0) not in after(*notes)


def test_a_note_of_an_older_version_undoes_what_any_run_of_the_lineage_wrote():
    older = {"restored": 3, "run": "b", "lineage": "x", "epoch": 1, "time": 20.0}
    assert written(checkpoint=3) in after(older) and written(checkpoint=2) not in after(older)
    assert written(lineage="y") not in after(older) and written(time=21.0) not in after(older)


def test_runs_that_a_damaged_file_has_go_on_with_each_other_do_no_harm():
    undone = after(restore_note("a", "x", 2, 3, 20.0, ("b", 1)), restore_note("b", "x", 2, 3, 20.0, ("a", 1)))
    assert written() in undone and written(run="c") not in undone


class Story:
    """Runs over one state folder, each tuple a dead letter: which of them are read again, and what notes say of that."""

    def __init__(self):
        self.records, self.notes = [], []
        #: (records before it, source, position) each time that a source is read again from there
        self.again = []
        #: (run that wrote it, number, source, position, whether a run began with it) of checkpoints that are kept under a name
        self.savepoints = []
        self.source = self.run = 0
        self.folder, self.begun = [], 0
        self.begin(None)

    def begin(self, continues):
        self.run, self.epoch, self.pending, self.continues = self.run + 1, 1, None, continues
        if continues is None:
            self.source += 1
            self.start = self.position = 0

    def go_to(self, number, position):
        now = float(len(self.records) + len(self.notes))
        self.notes.append(restore_note(f"r{self.run}", "x", self.epoch, number, now, self.continues))
        self.again.append((len(self.records), self.source, position))
        self.position, self.pending = position, None
        self.savepoints = [
            each for each in self.savepoints if each[2] != self.source or each[1] <= number or not self.along
        ]

    def newest(self, damaged):
        """The one to go on from; none: the beginning."""
        if damaged and len(self.folder) > 1:
            self.folder.pop()
        return self.folder[-1] if self.folder else (None, 0, self.source, 0, False)

    def read(self, count):
        for _ in range(count):
            now = float(len(self.records) + len(self.notes))
            made = {"run": f"r{self.run}", "lineage": "x", "epoch": self.epoch, "checkpoint": self.begun, "time": now}
            self.records.append({**made, "source": self.source, "position": self.position})
            self.position += 1

    def cut(self, count):
        self.begun += 1
        self.pending = (self.run, self.begun, self.source, self.position, False)

    def complete(self, count):
        if self.pending is not None:
            self.folder, self.pending = [*self.folder, self.pending][-2:], None

    def die(self, count):
        number, _, position = self.newest(count == 3)[1:4]
        self.epoch += 1
        self.go_to(number, position)

    def resume(self, count):
        """Go on in another run; of 2, the first dies before it has built anything."""
        for dies in (True, False)[count != 2 :]:
            last = self.folder[-1][1] if self.folder else 0
            run, number, _, position = self.newest(count == 3)[:4]
            before = LastRun(f"r{self.run}", self.continues)
            self.begin(continued(before, (f"r{run}", number) if self.folder else None))
            self.begun = last
            self.go_to(number, position)
            if dies:
                self.notes.pop()

    def anew(self, count):
        self.begin(None)
        self.folder, self.begun = [], (self.begun if count == 3 else 0)

    def keep(self, count):
        if self.folder and not self.folder[-1][4]:
            self.savepoints.append(self.folder[-1])

    def go_back(self, count):
        """Begin with a savepoint, under a number above all that are there; of 2, the first run dies before it has built anything."""
        if self.savepoints:
            run, number, self.source, position, _ = self.savepoints[count % len(self.savepoints)]
            self.begin((f"r{run}", number))
            self.begun = max(number, *(each[1] for each in self.folder), 0) + 1
            self.folder = [(run, self.begun, self.source, position, True)]
            self.go_to(self.begun, position)
            if self.along:
                self.savepoints = [each for each in self.savepoints if each[2] != self.source or each[1] <= number]
            if count == 2:
                self.notes.pop()
                self.resume(1)

    #: only savepoints that lie on the way to where a run is are gone back to
    along = True

    def read_again(self, i):
        record = self.records[i]
        return any(
            i < before and source == record["source"] and position <= record["position"]
            for before, source, position in self.again
        )


ACTS = ("read", "read", "cut", "complete", "die", "resume", "anew", "keep", "go_back")
acts = st.lists(st.tuples(st.sampled_from(ACTS), st.integers(1, 3)), max_size=40)


def story(steps, along=True):
    made = Story()
    made.along = along
    for act, count in steps:
        getattr(made, act)(count)
    return made, after(*made.notes)


READ_AND_CUT = [("read", 3), ("cut", 1), ("complete", 1), ("read", 3)]


@given(acts)
@example([*READ_AND_CUT, ("anew", 1), *READ_AND_CUT, ("die", 1), ("resume", 1)])
@example([*READ_AND_CUT, ("resume", 1), ("read", 2), ("resume", 1), ("read", 2), ("die", 1)])
@example(
    [*READ_AND_CUT, ("keep", 1), *READ_AND_CUT, ("anew", 1), ("read", 3), ("go_back", 1), ("read", 2), ("resume", 1)]
)
@example([*READ_AND_CUT, ("resume", 2), ("read", 2), ("die", 1), ("resume", 2), ("read", 1)])
@example([("read", 3), ("resume", 2), ("read", 2), ("die", 1), ("anew", 1), ("read", 1), ("resume", 2), ("read", 1)])
@example(
    [*READ_AND_CUT, ("keep", 1), *READ_AND_CUT, ("anew", 1), ("read", 3), ("go_back", 2), ("read", 2), ("resume", 2)]
)
@example([*READ_AND_CUT, *READ_AND_CUT, ("resume", 3), ("read", 1), ("die", 3), ("read", 1), ("resume", 1)])
def test_a_record_is_undone_exactly_where_its_tuple_is_read_again(steps):
    made, undone = story(steps)
    for i, each in enumerate(made.records):
        assert (each in undone) == made.read_again(i)


@given(acts)
def test_no_record_is_undone_whose_tuple_is_not_read_again_whatever_savepoint_is_gone_back_to(steps):
    made, undone = story(steps, along=False)
    for i, each in enumerate(made.records):
        assert made.read_again(i) or each not in undone
