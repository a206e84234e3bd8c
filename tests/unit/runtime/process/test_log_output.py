"""Records as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
import sys

import pytest

from esault.runtime.process.log_output import (
    JsonFormatter,
    StderrHandler,
    TextFormatter,
    deliver,
    say,
    short_line,
)


def record(**more):
    about = {"name": "words", "levelno": 30, "levelname": "WARNING", "msg": "late", "created": 0.5, "process": 7}
    return logging.makeLogRecord({**about, **more})


OF_A_SUB_UNIT = {"run": "r1", "topology": "t", "unit": "count", "sub_unit": 3, "host": "a"}


class TestText:
    def test_people_read_who_said_it_and_how_bad_it_is(self):
        assert TextFormatter(dated=False).format(record(**OF_A_SUB_UNIT)) == "[count/3] WARNING words: late"

    def test_a_file_has_the_time_and_the_run_too(self):
        said = TextFormatter(dated=True).format(record(**OF_A_SUB_UNIT))
        assert said == "1970-01-01T00:00:00.500Z r1 [count/3] WARNING words: late"

    def test_the_commands_own_has_no_unit(self):
        assert TextFormatter(dated=False).format(record()) == "WARNING words: late"
        assert short_line(record()) == ("", "WARNING words: late")
        assert short_line(record(**OF_A_SUB_UNIT)) == ("count/3", "WARNING words: late")

    def test_a_traceback_follows(self):
        assert TextFormatter(dated=False).format(record(exc_text="Traceback ...")).endswith("late\nTraceback ...")


class TestJson:
    def test_a_line_has_all_that_is_known(self):
        said = json.loads(JsonFormatter().format(record(**OF_A_SUB_UNIT, order=17, exc_text="Traceback ...")))
        assert said == {
            "time": "1970-01-01T00:00:00.500Z",
            "level": "warning",
            "logger": "words",
            "message": "late",
            **OF_A_SUB_UNIT,
            "process": 7,
            "order": 17,
            "exception": "Traceback ...",
        }

    def test_the_commands_own_says_of_which_run_it_is(self):
        formatter = JsonFormatter()
        formatter.about = {"run": "r1"}
        assert json.loads(formatter.format(record()))["run"] == "r1"

    def test_what_the_caller_adds_cannot_take_the_place_of_a_field(self):
        assert json.loads(JsonFormatter().format(record(level="none", time=3)))["level"] == "warning"

    def test_what_ends_a_run_is_told_with_its_cause(self):
        handler = logging.StreamHandler(out := io.StringIO())
        handler.setFormatter(JsonFormatter())
        say(handler, "esault.run", "failed", logging.ERROR, ValueError("seven"))
        said = json.loads(out.getvalue())
        assert (said["level"], said["message"]) == ("error", "failed")
        assert said["exception"] == "ValueError: seven"


class Terminal(io.StringIO):
    def isatty(self):
        return True


class TestWhere:
    def test_a_file_stays_the_same_whatever_stands_for_standard_error(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", file := io.StringIO())
        handler = StderrHandler()
        monkeypatch.setattr(sys, "stderr", io.StringIO())
        handler.handle(record())
        assert file.getvalue() == "late\n"

    def test_on_a_terminal_a_live_view_gets_it(self, monkeypatch):
        monkeypatch.setattr(sys, "stderr", Terminal())
        handler = StderrHandler()
        monkeypatch.setattr(sys, "stderr", view := io.StringIO())
        handler.handle(record())
        assert view.getvalue() == "late\n"

    def test_a_script_that_has_configured_nothing_has_it_on_standard_error(self, monkeypatch):
        monkeypatch.setattr(logging.root, "handlers", [])
        monkeypatch.setattr(sys, "stderr", out := io.StringIO())
        deliver(record(**OF_A_SUB_UNIT))
        deliver(record(**OF_A_SUB_UNIT), fallback=False)
        assert out.getvalue() == "[count/3] WARNING words: late\n"

    @pytest.mark.parametrize("level, comes", [(logging.INFO, True), (logging.ERROR, False)])
    def test_the_scripts_levels_and_handlers_count(self, monkeypatch, level, comes):
        logger = logging.getLogger("tests.log_output")
        monkeypatch.setattr(logger, "level", level)
        monkeypatch.setattr(logger, "_cache", {})
        seen = []
        handler = logging.Handler()
        handler.emit = seen.append
        monkeypatch.setattr(logger, "handlers", [handler])
        deliver(record(name="tests.log_output"))
        assert bool(seen) is comes
