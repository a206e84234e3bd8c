"""What is said of a server that stands still: once for each question that is open for long."""

from __future__ import annotations

import threading

import pytest

from esault.answer_watch import AnswerWatch


@pytest.fixture
def now(monkeypatch):
    return [100.0]


@pytest.fixture
def watch(now, monkeypatch):
    monkeypatch.setattr(threading.Thread, "start", lambda thread: None)
    return AnswerWatch(10.0, lambda: now[0])


def test_a_question_that_is_open_for_long_is_said_once(watch, now):
    said = []
    with watch.asking(said.append) as question:
        now[0] += 9.9
        assert watch.look() and said == []
        now[0] += 0.1
        assert watch.look() and said == [10.0]
        now[0] += 60
        assert watch.look() and said == [10.0]
        assert not question.first()
    assert not watch.look()


def test_what_may_take_its_time_is_said_later(watch, now):
    said = []
    with watch.asking(said.append, allowed=5.0):
        now[0] += 14.9
        watch.look()
        assert said == []
        now[0] += 0.1
        watch.look()
    assert said == [10.0]


def test_one_whose_error_was_said_is_not_said_again(watch, now):
    said = []
    with watch.asking(said.append) as question:
        assert question.first()
        now[0] += 20
        watch.look()
    assert said == []


def test_each_question_has_a_time_of_its_own(watch, now):
    said = []
    with watch.asking(lambda seconds: said.append("first")):
        now[0] += 6
        with watch.asking(lambda seconds: said.append("second")):
            now[0] += 4
            watch.look()
            assert said == ["first"]
        now[0] += 6
        watch.look()
    assert said == ["first"]


def test_in_a_forked_process_nothing_of_the_other_is_open(watch, now, monkeypatch):
    said = []
    with watch.asking(said.append):
        monkeypatch.setattr("os.getpid", lambda: -1)
        with watch.asking(lambda seconds: said.append("ours")):
            now[0] += 10
            watch.look()
    assert said == ["ours"]


def test_its_thread_looks_and_ends(now):
    said, heard = [], threading.Event()
    watch = AnswerWatch(0.01)

    def silent(seconds):
        said.append(threading.current_thread())
        heard.set()

    with watch.asking(silent):
        assert heard.wait(10)
    said[0].join(10)
    assert not said[0].is_alive()
