"""Errors of the user's own code while a value is made again."""

from __future__ import annotations

import json
import pickle

from esault.payload.own_error import own_error


class Fails:
    def __setstate__(self, state):
        raise ValueError("no such state")


class Hashed:
    def __init__(self):
        self.name = "x"

    def __hash__(self):
        return hash(self.name)

    def __eq__(self, other):
        return self is other


def raised(call):
    try:
        call()
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_place_and_the_error_are_said():
    made = Fails()
    vars(made)["a"] = 1
    said = own_error(raised(lambda: pickle.loads(pickle.dumps(made))))
    assert said is not None
    assert "__setstate__, test_own_error.py:" in said and "ValueError" in said and said.endswith("no such state")


def test_an_object_in_a_set_of_its_own_is_explained():
    made = Hashed()
    vars(made)["all"] = {made}
    said = own_error(raised(lambda: pickle.loads(pickle.dumps(made))))
    assert said is not None and "AttributeError" in said and "before it has its attributes" in said


def test_an_error_of_a_library_is_not_the_users():
    assert own_error(raised(lambda: json.loads("{"))) is None


def test_an_error_that_was_never_raised_is_nobodys():
    assert own_error(ValueError("x")) is None
