"""What `--ui` makes of a view."""

from __future__ import annotations

import pytest

from esault.errors import UsageError
from esault.runtime.session.request import Quiet
from esault.ui.web import web_view
from esault.ui.web_option import web_ui


def test_without_it_the_view_is_as_it_was():
    view = Quiet()
    with web_ui(view, None) as found:
        assert found is view


@pytest.mark.parametrize("more", [{"control": True}, {"tls": ("a.pem", "a.key")}])
def test_what_goes_with_a_page_is_refused_without_one(more):
    with pytest.raises(UsageError, match="go with --ui PORT"), web_ui(Quiet(), None, **more):
        pass


def test_the_page_goes_when_the_run_ends_or_fails(monkeypatch):
    closed = []

    class View:
        def __init__(self, address, view, control):
            self.made = (address.host, address.port, bool(address.token), view, control)

        def close(self):
            closed.append(self.made)

    monkeypatch.setattr(web_view, "WebView", View)
    view = Quiet()
    with pytest.raises(KeyError), web_ui(view, "8080", control=True) as found:
        assert isinstance(found, View)
        assert found.made == ("127.0.0.1", 8080, True, view, True)
        raise KeyError
    assert len(closed) == 1
