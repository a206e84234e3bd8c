"""Events as SseSink writes them and SseSource reads them: whatever stands in a row, it is one event."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from esault.connectors.http.sse_sink import _event
from esault.connectors.http.sse_source import EventParser

TEXT = st.text("a:d \n\r\ud7ff", max_size=12)


@given(kind=TEXT, data=TEXT)
@example(kind="total\n\nevent: end", data="1")
@example(kind="a\rdata: 2", data="1")
def test_a_row_is_one_event_with_its_data(kind, data):
    parser = EventParser("")
    (event,) = parser.feed(_event(kind, data, "7").encode())
    assert event.data == data.replace("\r\n", "\n").replace("\r", "\n")
    assert event.kind.split() == (kind.split() or ["message"])
    assert event.id == "7"
