from __future__ import annotations

import re
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.errors import LocateError
from esault.topology.parameters import Parameter, check_params, convert, parameters

if TYPE_CHECKING:
    from somewhere import Unknown


def refused(said):
    return pytest.raises(LocateError, match=re.escape(said))


def everything(
    plain,
    text: str,
    number: int = 3,
    rate: float = 0.5,
    fast: bool = False,
    folder: Path = Path("data"),
    names: list[str] = ["a", "b"],
    old: typing.List[str] = [],  # noqa: UP006
    limit: Optional[int] = None,  # noqa: UP045
    out: Path | None = None,
    implicit: str = None,  # noqa: RUF013
    anything: typing.Any = "x",
    *ignored: int,
    strange: dict[str, int] = {},
    other: Unknown = None,
    **also_ignored: int,
) -> Unknown: ...


def test_parameters_are_read_from_annotations_that_are_texts():
    assert [(p.name, p.annotation, p.required) for p in parameters(everything)] == [
        ("plain", "str", True),
        ("text", "str", True),
        ("number", "int", False),
        ("rate", "float", False),
        ("fast", "bool", False),
        ("folder", "Path", False),
        ("names", "list[str]", False),
        ("old", "list[str]", False),
        ("limit", "int or none", False),
        ("out", "Path or none", False),
        ("implicit", "str or none", False),
        ("anything", "str", False),
        ("strange", "dict[str, int]", False),
        ("other", "Unknown or none", False),
    ]


def test_parameters_are_read_from_annotations_that_are_types():
    namespace = {"Path": Path}
    exec("def topology(path: Path, n: int | None = 5, *, x=1): ...", namespace)
    assert [str(p) for p in parameters(namespace["topology"])] == ["path: Path", "n: int or none = 5", "x: int = 1"]


def test_defaults_are_written_as_one_would_set_them():
    texts = {p.name: p.default_text for p in parameters(everything)}
    assert texts["number"] == "3"
    assert texts["fast"] == "false"
    assert texts["folder"] == "data"
    assert texts["names"] == "a,b"
    assert texts["limit"] == texts["text"] == ""


def test_a_parameter_that_cannot_be_passed_by_name_is_refused():
    def topology(path, /): ...

    with refused("parameter 'path': parameters are passed by name; leave out the `/` behind it"):
        parameters(topology)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("text=a=b", "a=b"),
        ("text=", ""),
        ("text=none", "none"),
        ("number=-7", -7),
        ("number=1_000", 1000),
        ("rate=1e3", 1000.0),
        ("fast=yes", True),
        ("fast=OFF", False),
        ("fast=0", False),
        ("folder=a/b", Path("a/b")),
        ("names=a, b ,c", ["a", "b", "c"]),
        ("names=", []),
        ("limit=4", 4),
        ("limit=none", None),
        ("limit=", None),
        ("out=none", Path("none")),
        ("out=", None),
        (" number =4", 4),
    ],
)
def test_texts_are_converted_by_the_annotation(text, value):
    name = text.partition("=")[0].strip()
    given = ["plain=x", text] if name == "text" else ["plain=x", "text=x", text]
    converted = convert(parameters(everything), given)[name]
    assert converted == value
    assert type(converted) is type(value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("number=many", "parameter 'number': 'many' is not a whole number (it is annotated int)"),
        ("number=1.5", "parameter 'number': '1.5' is not a whole number"),
        ("number=", "parameter 'number': '' is not a whole number"),
        ("rate=fast", "parameter 'rate': 'fast' is not a number (it is annotated float)"),
        ("fast=maybe", "parameter 'fast': 'maybe' is not one of true, yes, on, 1, false, no, off, 0"),
        ("limit=x", "parameter 'limit': 'x' is not a whole number (it is annotated int or none)"),
        ("number", "parameter 'number': write NAME=VALUE. Parameters: plain: str, text: str, number: int = 3"),
        ("numbr=4", "there is no parameter 'numbr'; did you mean 'number'? Parameters: plain: str"),
        ("zzz=4", "there is no parameter 'zzz'. Parameters: plain: str"),
        ("strange=4", "parameter 'strange': its annotation dict[str, int] cannot be set by a text; what can: str, int"),
    ],
)
def test_a_text_that_cannot_be_converted_is_refused_with_name_value_and_type(text, said):
    with refused(said):
        convert(parameters(everything), [text])


def test_a_parameter_given_twice_is_refused():
    with refused("parameter 'number' is given twice; give it once"):
        convert(parameters(everything), ["number=1", "number=2"])


def test_required_parameters_must_be_given():
    with refused("these parameters have no default and must be given: plain=STR, text=STR. Parameters: plain: str,"):
        convert(parameters(everything), ["number=1"])
    assert convert(parameters(everything), ["plain=a", "text=b"]) == {"plain": "a", "text": "b"}


def test_a_function_without_parameters_says_so():
    with refused("there is no parameter 'path'. The topology function takes no parameters."):
        convert(parameters(lambda: None), ["path=x"])


def test_values_are_checked_by_name_alone():
    known = parameters(everything)
    check_params(known, {"plain": 1, "text": object()})
    with refused("there is no parameter 'nope'."):
        check_params(known, {"plain": 1, "text": 2, "nope": 3})
    with refused("must be given: text=STR"):
        check_params(known, {"plain": 1})


WORDS = st.text(st.characters(blacklist_characters=",", blacklist_categories=("Cs",)), min_size=1).filter(
    lambda word: word == word.strip()
)
VALUES = {
    "str": st.text(),
    "int": st.integers(),
    "float": st.floats(allow_nan=False),
    "bool": st.booleans(),
    "Path": WORDS.filter(lambda word: "\0" not in word).map(Path),
    "list[str]": st.lists(WORDS),
}


@given(st.data(), st.sampled_from(sorted(VALUES)), st.booleans())
def test_a_value_that_is_written_is_read_back(data, kind, optional):
    parameter = Parameter("x", kind, "annotation", optional, required=True)
    value = data.draw(VALUES[kind].filter(lambda value: not optional or value not in ("", [])))
    if optional and data.draw(st.booleans()):
        value = None
    assert convert([parameter], [f"x={parameter.render(value)}"]) == {"x": value}


def by_defaults(many=3, rate=0.5, fast=False, folder=Path("data"), names=["a"], text="x", unknown=None, empty=[]): ...


def test_a_parameter_without_an_annotation_is_of_the_type_of_its_default():
    known = parameters(by_defaults)
    assert [p.annotation for p in known] == ["int", "float", "bool", "Path", "list[str]", "str", "str or none", "str"]
    texts = ["many=7", "rate=2", "fast=yes", "folder=here", "names=b,c", "text=1", "unknown=2"]
    assert convert(known, texts) == {
        "many": 7,
        "rate": 2.0,
        "fast": True,
        "folder": Path("here"),
        "names": ["b", "c"],
        "text": "1",
        "unknown": "2",
    }
    with refused("parameter 'many': 'x' is not a whole number (its default is 3)"):
        convert(known, ["many=x"])
