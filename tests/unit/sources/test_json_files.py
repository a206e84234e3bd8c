from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from esault.errors import SourceError, TopologyError
from esault.payload import json_lines
from esault.sources.json_files import JsonFiles
from esault.topology.context import Context
from esault.topology.spout import EndOfStream

SPOUTS = []


@pytest.fixture(autouse=True, params=["msgspec", "python"])
def inside_tmp_path(tmp_path, monkeypatch, request):
    """Each test reads by msgspec, and then as where that is not installed."""
    monkeypatch.chdir(tmp_path)
    if request.param == "python":
        monkeypatch.setattr(json_lines, "quick_decoder", lambda: None)
    yield
    while SPOUTS:
        SPOUTS.pop().close()


def opened(content, key="id", position=None, **arguments):
    Path("a.jsonl").write_bytes(content.encode() if isinstance(content, str) else content)
    spout = JsonFiles("*.jsonl", key, **arguments)
    spout.check()
    SPOUTS.append(spout)
    spout.open(Context("orders", logger=logging.getLogger("test.json_files")))
    if position is not None:
        spout.seek(position)
    return spout


def rest(spout, limit=1000):
    rows = []
    while True:
        try:
            rows += spout.read(limit)
        except EndOfStream:
            return rows


def test_each_line_is_a_dict_and_its_key_a_field():
    spout = opened('{"id": 1, "x": [1, 2.5, null]}\n{"id": "two"}\r\n{"id": true}')
    assert rest(spout) == [(1, {"id": 1, "x": [1, 2.5, None]}), ("two", {"id": "two"}), (True, {"id": True})]
    assert spout.progress()[0] == spout.progress()[1] > 0


def test_without_a_key_the_key_is_the_name_of_the_file():
    assert rest(opened("{}\n", key=None)) == [("a.jsonl", {})]


def test_a_key_can_be_made_by_a_function_and_lists_become_tuples():
    content = '{"shop": "x", "till": 2}\n'
    assert rest(opened(content, key=lambda v: (v["shop"], v["till"])))[0][0] == ("x", 2)
    assert rest(opened('{"id": ["x", [2, true]]}\n'))[0][0] == ("x", (2, True))


LINES = [
    '{"id": 1}',
    '{"id": 2, "x": [1]}',
    '{"id": 3}, {"id": 4}',
    '{"id": [1',
    "2]}",
    "2]}, {}",
    "[]",
    "7",
    "{}",
    '{"id": 1.5}',
]
LINES += [
    " ",
    "",
    '{"id": "\\ud800"}',
    '{"id": "\\u00e9"}',
    '{"id": true}',
    "null",
    "]",
    "[",
    "NaN",
    '{"id": 5} ',
    ' {"id": 6}',
]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=6))
def test_lines_that_are_read_together_are_what_each_is_alone(lines):
    alone, bad = [], 0
    for line in lines:
        spout = opened(line + "\n", on_bad_line="skip")
        alone += rest(spout)
        bad += spout.counters().get("bad_lines_skipped", 0)
    spout = opened("".join(f"{line}\n" for line in lines), on_bad_line="skip")
    rows = rest(spout)
    assert rows == alone and [type(key) for key, _ in rows] == [type(key) for key, _ in alone]
    assert spout.counters().get("bad_lines_skipped", 0) == bad


def test_objects_share_the_names_of_their_fields():
    rows = rest(opened('{"id": 1, "field": 2}\n' * 3))
    assert len({id(name) for _, value in rows for name in value}) == 2


def test_empty_lines_do_not_count():
    spout = opened('\n{"id": 1}\n  \n\n{"id": 2}\n\n')
    assert [key for key, _ in rest(spout)] == [1, 2]
    assert not any(spout.counters().values())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "{oops",
            r"no JSON: Expecting property name .* at character 2 of \{oops; correct the line, or leave such lines",
        ),
        ('{"id": 1} {"id": 2}', "no JSON: Extra data at character 11"),
        ("[1, 2]", r"holds a list where an object \{\.\.\.\} is needed"),
        ('"x"', "holds a text where an object"),
        ("7", "holds a number or a truth value where an object"),
        ("null", "holds null where an object"),
        ('{"no": 1}', "the object has no field 'id', which key= asks for: {\"no\": 1}"),
        (
            '{"id": 1.5}',
            "the key would be 1.5, of type float, and a key is text, a whole number, true, false or a list",
        ),
        ('{"id": null}', "the key would be None, of type NoneType"),
        ('{"id": {"a": 1}}', "the key would be {'a': 1}, of type dict"),
        ('{"id": [1, null]}', "the key would be None, of type NoneType"),
        (r'{"id": 1, "x": "\ud800"}', "names half a character"),
        ('{"id": 1, "x": ' + "[" * 100_000, "no usable JSON: nested too deeply"),
        ('{"id": ' + "9" * 5000 + "}", "the JSON reader raised ValueError: Exceeds the limit"),
        ('{"id": "' + "x" * 100 + '"', r"no JSON: .* of \{\"id\": \"x{69}\.\.\.; correct the line"),
    ],
)
def test_a_bad_line_is_named_by_file_and_number_after_the_good_ones_came(line, message):
    spout = opened('{"id": 1}\n\n{"id": 2}\n' + line + '\n{"id": 3}\n')
    assert [key for key, _ in spout.read(100)] == [1, 2]
    position = spout.position()
    for _ in range(2):
        with pytest.raises(SourceError, match=r"a\.jsonl, line 4: " + message):
            spout.read(100)
    assert spout.position() == position
    again = opened('{"id": 1}\n\n{"id": 2}\n' + '{"id": 9}\n{"id": 3}\n', position=position)
    assert [key for key, _ in rest(again)] == [9, 3]


def test_half_a_pair_of_escapes_is_bad_and_a_whole_pair_is_good():
    assert rest(opened(r'{"id": 1, "x": "\ud83d\ude00"}'))[0][1]["x"] == "😀"


def test_bad_lines_can_be_left_out_counted_and_the_first_is_logged(caplog):
    spout = opened('{"id": 1}\noops\n{"id": 2.5}\n{"id": 2}\n', on_bad_line="skip")
    assert [key for key, _ in rest(spout, 2)] == [1, 2]
    assert spout.counters()["bad_lines_skipped"] == 2
    assert len(caplog.messages) == 1
    assert caplog.messages[0].startswith(
        "a.jsonl, byte 10: a line that makes no row was left out (no JSON: Expecting value at character 1"
    )


def test_an_error_of_the_users_function_keeps_its_traceback():
    spout = opened('{"id": 1}\n', key=lambda value: value["shop"])
    with pytest.raises(SourceError, match="the function key= or the JSON reader raised KeyError: 'shop' for") as caught:
        spout.read(1)
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_byte_order_mark_is_explained():
    with pytest.raises(SourceError, match='byte order mark: read the file with encoding="utf-8-sig"'):
        opened('\ufeff{"id": 1}\n').read(1)
    assert rest(opened('\ufeff{"id": 1}\n', encoding="utf-8-sig")) == [(1, {"id": 1})]


def test_bytes_that_are_no_text_are_named_with_their_line():
    spout = opened(b'{"id": 1}\n{"id": "\xff"}\n')
    assert len(spout.read(10)) == 1
    with pytest.raises(SourceError, match=r"a\.jsonl, line 2: byte 18 cannot be decoded as utf-8"):
        spout.read(10)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"on_bad_line": "drop"}, 'JsonFiles: on_bad_line=\'drop\': write "fail" or "skip"'),
        ({"key": 3}, "JsonFiles: key=3: write the name of a field, or a function of the object"),
        ({"errors": "x"}, "^JsonFiles: errors='x': write"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_remedy(arguments, message):
    with pytest.raises(TopologyError, match=message):
        JsonFiles("a.jsonl", **arguments)


def test_a_file_can_be_followed():
    now = [0.0]
    Path("a.jsonl").write_text('{"id": 1}\nbad\n')
    spout = JsonFiles("a.jsonl", "id", follow=True)
    SPOUTS.append(spout)
    spout.open(Context("orders", now=lambda: now[0]))
    assert spout.read(10) == [(1, {"id": 1})]
    with pytest.raises(SourceError, match=r"a\.jsonl, line 2: no JSON"):
        spout.read(10)
    assert spout.progress() is None


# small files ---------------------------------------------------------------------------------------


def many(files, **arguments):
    """A reader of these files: names without their ending -> content."""
    for name, content in files.items():
        Path(f"{name}.jsonl").write_text(content)
    return opened_again(**arguments)


def opened_again(position=None, key="id", **arguments):
    spout = JsonFiles("*.jsonl", key, **arguments)
    spout.check()
    SPOUTS.append(spout)
    spout.open(Context("orders", logger=logging.getLogger("test.json_files")))
    if position is not None:
        spout.seek(position)
    return spout


def test_one_read_has_objects_of_many_small_files():
    spout = many({f"{i:02}": f'{{"id": {i}}}\n{{"id": "x{i}"}}\n' for i in range(20)}, key=None)
    rows = spout.read(1000)
    wanted = [(f"{i:02}.jsonl", {"id": each}) for i in range(20) for each in (i, f"x{i}")]
    assert rows == wanted
    with pytest.raises(EndOfStream):
        spout.read(1)


def test_a_bad_line_among_small_files_is_named_by_its_file_and_number_after_the_good_ones_came():
    spout = many({"a": '{"id": 1}\n', "b": '{"id": 2}\n{"id": \n{"id": 3}\n', "c": '{"id": 4}\n'})
    rows = []
    with pytest.raises(SourceError, match=r"b\.jsonl, line 2: no JSON"):
        while True:
            rows += spout.read(1000)
    assert [key for key, _ in rows] == [1, 2]
    Path("b.jsonl").write_text('{"id": 2}\n{"id": 9}\n{"id": 3}\n')
    assert [key for key, _ in rest(opened_again(spout.position()))] == [9, 3, 4]


def test_bad_lines_among_small_files_are_left_out_and_counted_once():
    files = {f"{i:03}": f'{{"id": {i}}}\nbad\n\n{{"id": {i}.5}}\n{{"id": "y"}}' for i in range(90)}
    spout = many(files, on_bad_line="skip")
    assert [key for key, _ in rest(spout, 7)] == [each for i in range(90) for each in (i, "y")]
    assert spout.counters()["bad_lines_skipped"] == sum(spout.counters().values()) == 180


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.lists(
        st.lists(st.sampled_from(['{"id": 1}\n', '{"id": "two"}\n', "\n", "bad\n", "{}\n"]), max_size=5), min_size=1
    ),
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
)
def test_small_files_give_what_each_gives_alone_and_are_gone_on_with_behind_each_read(contents, limits):
    for old in Path().glob("*.jsonl"):
        old.unlink()
    files = {f"{i:02}": "".join(lines) for i, lines in enumerate(contents)}
    good = {'{"id": 1}\n': 1, '{"id": "two"}\n': "two"}
    wanted = [(good[line], {"id": good[line]}) for lines in contents for line in lines if line in good]
    spout, rows, positions = many(files, on_bad_line="skip"), [], []
    try:
        for i in range(1000):
            rows += spout.read(limits[i % len(limits)])
            positions.append((len(rows), spout.position()))
    except EndOfStream:
        pass
    assert rows == wanted
    bad = sum(line in ("bad\n", "{}\n") for lines in contents for line in lines)
    assert sum(spout.counters().values()) == bad
    for count, position in positions:
        assert rest(opened_again(position, on_bad_line="skip"), limits[0]) == wanted[count:]
