"""The name that stands for one version of an object."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from esault.object_store.stored_object import StoredObject, is_url, local_path, without_version


@given(st.text(max_size=20), st.integers(0, 2**60), st.text(min_size=1, max_size=20))
def test_a_name_brings_the_object_back(key, size, tag):
    made = StoredObject.described(f"s3://bucket/{key}", {"size": size, "ETag": tag})
    assert StoredObject.named(made.name) == made
    assert without_version(made.name) == made.url


@given(st.text(max_size=8), st.text(max_size=8))
def test_another_version_has_another_name(one, two):
    names = {StoredObject.described("s3://b/k", {"size": 1, "ETag": tag}).name for tag in (one, two)}
    assert (len(names) == 1) is (one.strip('"') == two.strip('"'))


def test_a_time_is_the_same_as_text_of_seconds_and_as_datetime():
    at = datetime(2026, 1, 2, tzinfo=timezone.utc)
    one = StoredObject.described("gs://b/k", {"size": 1, "mtime": at})
    assert one == StoredObject.described("gs://b/k", {"size": 1, "mtime": at.timestamp()})


@pytest.mark.parametrize("info", [{}, {"size": None}, {"size": 0, "ETag": None}])
def test_a_store_that_says_nothing_is_borne(info):
    made = StoredObject.described("s3://b/k", info)
    assert made.size == 0 and StoredObject.named(made.name) == made


@pytest.mark.parametrize(
    ("path", "is_one"),
    [
        ("s3://b/k", True),
        ("GS://b", True),
        ("a+b://x", True),
        ("/a/b", False),
        ("a:b", False),
        ("c:\\x", False),
        ("//x", False),
    ],
)
def test_addresses_are_told_from_paths(path, is_one):
    assert is_url(path) is is_one


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file://localhost/a", "/a"),
        ("file:///a%20b%C3%BC", "/a bü"),
        ("/a%20b", "/a%20b"),
        ("s3://b/k", "s3://b/k"),
        ("", ""),
    ],
)
def test_an_address_of_a_file_is_its_path(text, path):
    assert local_path(text) == path


def test_the_name_of_a_file_stays_as_it_is():
    assert without_version("/a#b") == "/a#b"


def test_a_tag_is_the_same_with_and_without_its_quotes():
    one, two = (StoredObject.described("s3://b/k", {"size": 1, "ETag": tag}) for tag in ("abc", '"abc"'))
    assert one == two and one.version == "abc"
