from __future__ import annotations

import pytest

from esault.errors import TopologyError
from esault.sources.line_format import LineFormat


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"errors": "loose"}, 'errors=\'loose\': write "strict", "replace", "ignore" or "skip"'),
        ({"on_long_line": "cut"}, 'on_long_line=\'cut\': write "fail", "skip" or "truncate"'),
        ({"max_line": 0}, "max_line=0: write a number of bytes of at least 1"),
        ({"max_line": True}, "max_line=True: write a number of bytes"),
        ({"max_line": 1e6}, "max_line=1000000.0: write a number of bytes"),
        ({"encoding": "utf-9"}, "encoding='utf-9' is no text encoding that Python knows; write for example \"utf-8\""),
        ({"encoding": "base64"}, "encoding='base64' is no text encoding that Python knows"),
        ({"encoding": "utf-16"}, "a newline is not the byte 10 there, .* convert the text first, .*: iconv -f utf-16"),
        ({"encoding": "cp037"}, "encoding='cp037': a newline is not the byte 10 there"),
    ],
)
def test_a_wrong_argument_is_refused_with_the_remedy(arguments, message):
    with pytest.raises(TopologyError, match=message):
        LineFormat(**arguments)


def test_a_byte_order_mark_is_a_matter_of_its_own_and_not_of_the_codec():
    assert LineFormat("UTF-8-SIG").codec == "utf-8"
    assert LineFormat("UTF-8-SIG").has_mark
    assert not LineFormat("UTF-8").has_mark


def test_encodings_whose_text_depends_on_what_came_before_are_not_decoded_wholesale():
    assert LineFormat("latin1").wholesale
    assert not LineFormat("iso2022_jp").wholesale
    assert not LineFormat("utf-7").wholesale
