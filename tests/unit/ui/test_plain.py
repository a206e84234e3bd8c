"""Lines of progress: where something has changed, else now and then."""

from __future__ import annotations

from types import SimpleNamespace as Made

from esault.ui.plain import STILL, PlainView, ProgressLines


def at(now, came=0, sub_units=1, phase="running", progress=None):
    spout = Made(name="lines", kind="spout", tuples_in=0, tuples_out=came, sub_units=1, progress=progress)
    bolt = Made(name="count", kind="bolt", tuples_in=came, tuples_out=0, sub_units=sub_units, progress=None)
    return Made(now=now, seconds=now, phase=phase, units=(spout, bolt))


def test_a_line_says_time_share_width_and_rate():
    lines = ProgressLines(1.0)
    assert lines.next(at(0.0, progress=(0, 4))) == "0 s  0 %  lines 0 (0/s)  count 0 (0/s)"
    assert lines.next(at(2.0, 2000, 3, progress=(1, 4))) == "2 s  25 %  lines 2 k (1 k/s)  count x3 2 k (1 k/s)"


def test_no_more_often_than_asked_for():
    lines = ProgressLines(1.0)
    said = [now for now in range(100) if lines.next(at(now / 10, now))]
    assert said == list(range(0, 100, 10))


def test_nothing_new_is_said_now_and_then():
    lines = ProgressLines(1.0)
    said = [now for now in range(100) if lines.next(at(float(now)))]
    assert said == [0, STILL, 2 * STILL, 3 * STILL]


def test_before_and_after_the_run_nothing_is_said():
    lines = ProgressLines(1.0)
    assert lines.next(at(0.0, phase="starting")) == "" == lines.next(at(1.0, phase="ended"))


def test_user_code_speaks_on_stdout_all_else_on_stderr(capsys):
    view = PlainView()
    view.line("count/1", "grüß")
    view.notice("careful")
    view.update(at(0.0))
    view.update(at(0.1))
    out, err = capsys.readouterr()
    assert out == "[count/1] grüß\n" and err == "careful\n0 s  lines 0 (0/s)  count 0 (0/s)\n"
