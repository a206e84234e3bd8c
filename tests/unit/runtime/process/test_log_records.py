"""Records on their way from a process of the run to the command."""

from __future__ import annotations

import logging
import os
from typing import Any

import pytest

from esault.runtime.process.console import ConsoleReader, MarkedStream
from esault.runtime.process.log_records import RecordHandler, RecordReader, log_through, user_name


@pytest.fixture
def console():
    """What is written, and what comes out at the command's end, in order."""
    seen: list[Any] = []
    reader = ConsoleReader(
        RecordReader(lambda mark, text: seen.append((mark, text)), lambda record: seen.append(record))
    )
    reader.start()
    vars(reader)["seen"] = seen
    yield reader
    if reader._thread.is_alive():
        reader.close()


def logger_to(console, name="esault_topology_words_0123abcd"):
    handler = RecordHandler(console.write_fd, "count/3", {"run": "r1", "topology": "words", "host": "a"})
    handler.rename("count/3", "count", 3)
    logger = logging.Logger(name)
    logger.addHandler(handler)
    return logger


class TestRecords:
    def test_a_record_says_who_logged_it_and_what(self, console):
        logger_to(console).warning("%s is late", "row 7", extra={"order": 17, "what": {1}})
        console.close()
        (record,) = console.seen
        assert (record.name, record.levelname, record.getMessage()) == ("words", "WARNING", "row 7 is late")
        assert (record.unit, record.sub_unit, record.run, record.topology, record.host) == (
            "count",
            3,
            "r1",
            "words",
            "a",
        )
        assert (record.order, record.what, record.process) == (17, "{1}", os.getpid())
        assert record.funcName == "test_a_record_says_who_logged_it_and_what"

    def test_a_traceback_comes_along(self, console):
        try:
            raise ValueError("seven")
        except ValueError:
            logger_to(console).exception("bad")
        console.close()
        (record,) = console.seen
        assert logging.Formatter().format(record).endswith("ValueError: seven")

    @pytest.mark.parametrize("size", [1, 4000, 4096, 100_000])
    @pytest.mark.parametrize("letter", ["x", "ä", "\n", "\x1e", "%"])
    def test_a_record_of_any_size_comes_whole(self, console, size, letter):
        logger_to(console).error(letter * size)
        console.close()
        assert [record.getMessage() for record in console.seen] == [letter * size]

    def test_lines_and_records_come_in_order(self, console):
        stream, logger = MarkedStream(console.write_fd, "count/3"), logger_to(console)
        for i in range(5):
            stream.write(f"line {i}\n")
            logger.warning("record %d", i)
        console.close()
        assert [each if isinstance(each, tuple) else each.getMessage() for each in console.seen] == [
            each for i in range(5) for each in (("count/3", f"line {i}"), f"record {i}")
        ]

    def test_what_is_torn_is_shown_as_a_line(self):
        seen = []
        reader = RecordReader(lambda mark, text: seen.append((mark, text)), seen.append)
        reader("\x1e12 count/3", '\x02{"name": "a", ')
        reader("\x1e12 count/3", "\x02{}{\x03")
        assert seen == [("count/3", "{}{")]

    def test_it_passes_a_host_on_the_way_as_it_is(self, console):
        """The agent of another host hands lines on, and the driver writes them again."""
        there = []
        other = ConsoleReader(lambda mark, text: there.append((mark, text)))
        other.start()
        logger_to(other).error("y" * 9000)
        other.close()
        for mark, text in there:
            MarkedStream(console.write_fd, mark).write(f"{text}\n")
        console.close()
        assert [record.getMessage() for record in console.seen] == ["y" * 9000]


@pytest.mark.parametrize(
    "name, known",
    [
        ("esault_topology_words_0123abcd", "words"),
        ("esault_topology_my_words_0123abcd.inner", "my_words.inner"),
        ("shop.orders", "shop.orders"),
        ("esault_topology_words", "esault_topology_words"),
    ],
)
def test_a_module_has_the_name_that_its_file_has(name, known):
    assert user_name(name) == known


class TestLoggersOfTheCommand:
    @pytest.fixture(autouse=True)
    def kept(self, monkeypatch):
        """The loggers of these tests themselves."""
        manager = logging.Manager(root := logging.RootLogger(logging.WARNING))
        root.manager = manager
        monkeypatch.setattr(logging, "root", root)
        monkeypatch.setattr(logging.Logger, "root", root)
        monkeypatch.setattr(logging.Logger, "manager", manager)
        root.manager = manager

    def test_their_own_handlers_work_in_the_command_alone(self):
        inner = logging.getLogger("shop")
        inner.addHandler(logging.NullHandler())
        inner.propagate = False
        handler = logging.NullHandler()
        log_through(handler)
        assert (logging.root.handlers, inner.handlers, inner.propagate) == ([handler], [], True)

    def test_a_level_that_was_set_for_the_module_by_its_name_counts(self):
        module = logging.getLogger("esault_topology_words_0123abcd")
        logging.getLogger("words").setLevel(logging.DEBUG)
        log_through(logging.NullHandler())
        assert module.isEnabledFor(logging.DEBUG)
