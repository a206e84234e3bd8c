"""hosts.toml and addresses."""

from __future__ import annotations

import pytest

from esault.cluster.address import is_loopback, join, split
from esault.cluster.hosts_file import HostsFile, read_hosts
from esault.errors import UsageError


def test_what_stands_in_it_is_read(tmp_path):
    path = tmp_path / "hosts.toml"
    path.write_text(
        'hosts = ["10.0.0.2:7420", "b"]\nkey = "k"\nshared = ["/mnt"]\nstrategy = "pack"\n'
        '[needs]\ncount = ["gpu"]\n[apart]\ncount = ["match"]\n'
    )
    assert read_hosts(path) == HostsFile(
        ("10.0.0.2:7420", "b"), str(tmp_path / "k"), ("/mnt",), "pack", {"count": ("gpu",)}, {"count": ("match",)}
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no host"),
        ("hosts = 3", "no list of texts"),
        ('hosts = ["a:b"]', "no address"),
        ('hosts = ["a"]\nslots = 3', "'slots' is not known"),
        ('hosts = ["a"]\nshared = ["mnt"]', "no absolute path"),
        ('hosts = ["a"]\nstrategy = "x"', "one of spread, pack, cheapest"),
        ('hosts = ["a"]\nneeds = 3', r"\[needs\] holds lines"),
        ("hosts = [", "cannot be read"),
    ],
)
def test_mistakes_are_named(tmp_path, text, said):
    path = tmp_path / "hosts.toml"
    path.write_text(text)
    with pytest.raises(UsageError, match=said):
        read_hosts(path)
    with pytest.raises(UsageError, match="there is no file"):
        read_hosts(tmp_path / "none")


def test_addresses():
    assert split("a") == ("a", 7420)
    assert split("10.0.0.2:1") == ("10.0.0.2", 1)
    assert split("[fd00::1]:5") == ("fd00::1", 5)
    assert split(join("fd00::1", 5)) == ("fd00::1", 5)
    for bad in ("", ":5", "a:b", "a:99999", "[fd00::1", "[a]5"):
        with pytest.raises(UsageError, match="no address"):
            split(bad)
    assert is_loopback("127.0.0.1")
    assert not is_loopback("192.0.2.1")
    with pytest.raises(UsageError, match="no host"):
        is_loopback("no.such.host.invalid")
