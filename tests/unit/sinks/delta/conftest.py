"""Tests that are not slow have no process that commits: what it does is done in theirs."""

from __future__ import annotations

import pytest


class Here:
    """In place of a `Committer`."""

    def __init__(self, path):
        from esault.sinks.delta.commits import DeltaCommits

        self.commits = DeltaCommits(path)

    def ask(self, do, **arguments):
        return getattr(self.commits, do)(**arguments)

    def close(self):
        pass


@pytest.fixture(autouse=True)
def here(request, monkeypatch):
    if request.node.get_closest_marker("slow") is None:
        monkeypatch.setattr("esault.sinks.delta.sink.Committer", Here)
    return Here
