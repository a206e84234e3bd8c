"""Texts that are decoded as one become what each becomes alone, or are left to be decoded alone."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.payload import json_lines
from esault.payload.json_lines import decode_each

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
ODD = st.sampled_from(
    [
        "",
        " ",
        "[1",
        "2]",
        "1,2",
        '{"a": 1',
        "}",
        '"',
        "\ufeff1",
        "1 2",
        "nul",
        '"\\ud800"',
        " 7 ",
        "1e999",
        '{"a":1,"a":2}',
    ]
)
TEXTS = st.lists(st.builds(json.dumps, VALUES) | ODD, max_size=6)


@pytest.mark.parametrize("quick", [True, False])
@given(texts=TEXTS)
@example(texts=["[1", "2]"])
@example(texts=["1,2", "3"])
@example(texts=['{"a": 1}', '{"a": NaN}'])
@example(texts=['"\\ud800"', '"x"'])
def test_all_at_once_is_as_one_by_one(quick, texts):
    with pytest.MonkeyPatch.context() as patch:
        if not quick:
            patch.setattr(json_lines, "quick_decoder", lambda: None)
        found = decode_each(texts)
    try:
        wanted = [json.loads(text) for text in texts]
    except ValueError:
        assert found is None
    else:
        assert found is None or repr(found) == repr(wanted)


@pytest.mark.parametrize("quick", [True, False])
def test_lines_of_objects_are_decoded_at_once_and_share_the_names_of_their_fields(quick, monkeypatch):
    if not quick:
        monkeypatch.setattr(json_lines, "quick_decoder", lambda: None)
    found = decode_each([json.dumps({"name": i, "ratio": i / 3}) for i in range(50)])
    assert found == [{"name": i, "ratio": i / 3} for i in range(50)]
    assert len({id(name) for each in found for name in each}) == 2
    assert decode_each(['{"a": NaN}'])[0]["a"] != 0
    assert decode_each(['{"a": NaN}'], halves=False) is None or not quick


def test_what_is_no_text_is_left_alone():
    assert decode_each([b"1", "2"]) is None
    assert decode_each([None]) is None
    assert decode_each([]) == []
