"""Addresses of objects: which objects one, a prefix or a glob stands for. The store is in memory."""

from __future__ import annotations

import glob
import tempfile
from concurrent.futures import Future
from itertools import count
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from esault.errors import SourceError, TopologyError
from esault.object_store.store import ObjectStore
from esault.object_store.stored_object import StoredObject
from esault.sources import object_list
from esault.sources.object_list import ObjectList, open_object

pytest.importorskip("fsspec", reason="fsspec is not installed: pip install 'esault[s3]'")

numbers = count()


def bucket(*names):
    """The address of a new bucket in which there are objects of these names, each with its name as content."""
    url = f"memory://lists{next(numbers)}"
    store = ObjectStore.of(SourceError, url, None)
    for name in names:
        store.write(f"{url}/{name}", name.encode())
    return url


def found(url, *paths, pattern="*"):
    listed = ObjectList([f"{url}/{path}" for path in paths], pattern, None)
    sizes = listed.sizes()
    urls = [StoredObject.named(name).url for name in sizes]
    assert [int(size) for size in sizes.values()] == [len(each[len(url) + 1 :]) for each in urls]
    return sorted(each[len(url) + 1 :] for each in urls)


def test_a_prefix_stands_for_what_fits_the_pattern_in_it_and_not_for_what_is_below():
    url = bucket("in/a.csv", "in/b.txt", "in/deep/c.csv", "other/d.csv", "in/.hidden.csv")
    assert found(url, "in", pattern="*.csv") == ["in/a.csv"]
    assert found(url, "in/", pattern="**/*.csv") == ["in/a.csv", "in/deep/c.csv"]


def test_a_glob_has_its_own_pattern():
    url = bucket("in/a.csv", "in/b.txt", "in/deep/c.csv", "out/a.csv", "in/.h/c.csv", "in/.x.csv")
    assert found(url, "in/*.txt", pattern="*.csv") == ["in/b.txt"]
    assert found(url, "*/a.csv") == ["in/a.csv", "out/a.csv"]
    assert found(url, "in/**") == ["in/a.csv", "in/b.txt", "in/deep/c.csv"]
    assert found(url, "in/**/c.csv") == ["in/deep/c.csv"]
    assert found(url, "in/.*") == ["in/.x.csv"]


def test_an_object_is_itself_also_where_its_name_looks_like_a_glob():
    url = bucket("in/data[1].txt", "in/data1.txt")
    assert found(url, "in/data1.txt") == ["in/data1.txt"]
    assert found(url, "in/data[1].txt", pattern="no") == ["in/data[1].txt"]


NAME = st.text("ab.", min_size=1, max_size=3).filter(lambda name: name.strip("."))
PATTERN = st.lists(st.sampled_from(["*", "a*", "**", "?", ".*", "b", "[ab]*"]), min_size=1, max_size=3)


@given(names=st.lists(NAME, min_size=1, max_size=3), pattern=PATTERN)
@example(names=["a", ".b", "a"], pattern=["**", "a"])
@example(names=["a"], pattern=["*", "**"])
@example(names=["a", "b", "a"], pattern=["**", "*"])
def test_a_name_fits_where_python_finds_a_file_of_that_name(names, pattern):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, *names)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        there = glob.glob("/".join(pattern), root_dir=folder, recursive=True)
    assert object_list._fits(names, pattern) == ("/".join(names) in there)


def test_what_is_not_there_is_named_with_what_was_looked_for():
    url = bucket("in/a.csv")
    with pytest.raises(SourceError, match="no such object, and none below it that fits pattern='x'"):
        ObjectList([f"{url}/in"], "x", None).measure(growing=False, patient=False)
    with pytest.raises(SourceError, match="no object fits this glob"):
        ObjectList([f"{url}/in/*.x"], "*", None).measure(growing=False, patient=False)
    assert ObjectList([f"{url}/in"], "x", None).measure(growing=True, patient=False) == {}
    assert list(ObjectList([f"{url}/in"], "*", None).measure(False, True).values()) == [8]


def test_only_what_is_in_a_bucket_may_be_a_pattern():
    with pytest.raises(SourceError, match="name the bucket"):
        ObjectList(["memory://*/in"], "*", None).sizes()


@pytest.mark.parametrize(
    ("url", "options", "said"),
    [
        ("S3://bucket/in", None, "the protocol in small letters"),
        ("s3:///in", None, "write s3://bucket/prefix"),
        ("s3://bucket", [("anon", True)], "storage_options=list: write a dict"),
    ],
)
def test_what_is_no_address_is_refused_at_once(url, options, said):
    with pytest.raises(TopologyError, match=said):
        ObjectList([url], "*", options)


def test_a_look_that_takes_long_is_waited_for_by_none_and_its_result_is_the_next_one(monkeypatch):
    monkeypatch.setattr(object_list, "_LONG", 0)
    looks = []
    monkeypatch.setattr(object_list, "in_background", lambda work: looks.append(Future()) or looks[-1])
    listed = ObjectList([bucket("a")], "*", None)
    assert listed.known_sizes() is None
    assert listed.known_sizes() is None
    looks[0].set_result({"a": 1})
    assert listed.known_sizes() == {"a": 1}
    assert listed.known_sizes() == {"a": 1}, "what was known stays known while another look is on"
    looks[1].set_result({"a": 1, "b": 2})
    assert listed.known_sizes() == {"a": 1, "b": 2}
    assert len(looks) == 2


def test_without_addresses_there_is_nothing_and_nothing_is_asked():
    listed = ObjectList([], "*", None)
    assert (listed.named, listed.known_sizes(), listed.sizes()) == (False, {}, {})
    assert ObjectList(["s3://bucket"], "*", None).named


def test_an_object_is_opened_by_its_name():
    url = bucket("in/a.csv")
    (name,) = ObjectList([f"{url}/in/a.csv"], "*", None).sizes()
    with open_object(name, None) as file:
        assert file.read() == b"in/a.csv"
