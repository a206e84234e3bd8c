from __future__ import annotations

import signal
import sys

import pytest


def _parse(monkeypatch, *words):
    from bench.kit.arguments import parse

    monkeypatch.setattr(sys, "argv", ["bench", *words])
    return parse("what it measures")


def test_a_bench_needs_a_folder(monkeypatch, capsys):
    with pytest.raises(SystemExit) as caught:
        _parse(monkeypatch)
    assert caught.value.code == 2
    assert "--out" in capsys.readouterr().err


@pytest.mark.parametrize(("words", "remedy"), [(["--runs", "0"], "at least 1"), (["--scale", "0"], "above 0")])
def test_sizes_that_make_no_sense_are_refused(words, remedy, monkeypatch, capsys):
    with pytest.raises(SystemExit) as caught:
        _parse(monkeypatch, "--out", "x", *words)
    assert caught.value.code == 2
    assert remedy in capsys.readouterr().err


def test_a_setting_has_the_type_of_its_default():
    from bench.kit.esault_run import setting

    assert setting("root_rows=64") == ("root_rows", 64)
    assert setting("linger=0.002") == ("linger", 0.002)
    assert setting("delivery=none") == ("delivery", "none")
    assert setting("watch_values=false") == ("watch_values", False)
    assert setting("reload_state=yes") == ("reload_state", True)


@pytest.mark.parametrize("text", ["root_rows", "speed=9"])
def test_what_is_no_setting_is_refused_with_the_names_there_are(text):
    from bench.kit.esault_run import setting

    with pytest.raises(
        ValueError, match=f"'{text}' is no setting; write NAME=VALUE with one of: delivery, .*root_rows"
    ):
        setting(text)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_bench_and_a_second_one_does_not_disturb_that(number, code, monkeypatch, capsys):
    _parse(monkeypatch, "--out", "x")
    with pytest.raises(SystemExit) as caught:
        signal.raise_signal(number)
    assert caught.value.code == code
    signal.raise_signal(number)
    signal.raise_signal(signal.SIGINT)
    assert capsys.readouterr().err == "stopped: what was not written yet is lost\n"
