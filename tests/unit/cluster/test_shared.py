"""Folders that hosts must share, where some of those that are named do not answer."""

from __future__ import annotations

import pytest

from esault.cluster import shared
from esault.cluster.hosts_file import HostsFile
from esault.cluster.messages import Welcome
from esault.cluster.shared import Sharing, Written, check_shared
from esault.cluster.survey import Found
from esault.errors import UsageError


@pytest.fixture
def here(monkeypatch):
    """A node on loopback, which sees all that this machine sees."""
    monkeypatch.setattr(shared, "_sees", lambda host, shares, own, key: True)
    welcome = Welcome(name="a", slots=4, free=4, offers=(), draining=False, members=(), esault="", python="", wall=0.0)
    return [Found("127.0.0.1:7420", welcome)]


@pytest.mark.parametrize("away", ["192.0.2.1:7420", "no.such.host.invalid"])
def test_a_host_of_another_machine_that_is_away_may_come_and_would_not_see_what_is_written_here(here, away, tmp_path):
    written = Written("sink 'out'", tmp_path / "out", "count")
    file = HostsFile((here[0].address, "localhost:7421"))
    assert check_shared([written], file, here, None) == Sharing()  # all are this machine
    file = HostsFile((here[0].address, away))
    found = check_shared([written], file, here, None)
    assert (found.host, [unit for unit, _ in found.pinned]) == ("a", ["count"])
    with pytest.raises(UsageError, match="which hosts.toml does not say is the same on all hosts"):
        check_shared([Written("the state of the run", tmp_path / "state")], file, here, None)
