from __future__ import annotations

import pytest
from packages import install

from esault.errors import UsageError
from esault.registry import Registry


@pytest.fixture
def words():
    return Registry("word", "esault.test.words", {"text": "textwrap:TextWrapper"}, reserved=("none",))


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_the_engines_own_are_imported_when_they_are_asked_for(words):
    from textwrap import TextWrapper

    assert words.find("text") is TextWrapper
    assert words.place("text") == "textwrap:TextWrapper"
    assert words.own == words.names() == ["text"]


def test_what_is_registered_is_found_replaced_and_taken_back(words):
    words.register("mine", dict)
    words.register("mine", list)
    assert words.find("mine") is list
    assert words.place("mine") is None
    assert words.names() == ["text", "mine"]
    assert words.own == ["text"]
    words.unregister("mine")
    words.unregister("mine")
    with pytest.raises(UsageError, match="there is no word 'mine'; there are: text, none"):
        words.find("mine")


@pytest.mark.parametrize("name", ["", "two words", "a:b", "a,b", "a=b", 7])
def test_a_name_must_be_a_word(words, name):
    with pytest.raises(UsageError, match="is no name of a word"):
        words.register(name, dict)


@pytest.mark.parametrize("name", ["text", "none"])
def test_the_engines_names_cannot_be_taken(words, name):
    with pytest.raises(UsageError, match="choose another name"):
        words.register(name, dict)


def test_what_is_registered_can_be_called(words):
    with pytest.raises(UsageError, match="'mine': 7 cannot be called"):
        words.register("mine", 7)


def test_an_installed_package_adds_names(words, site):
    install(site, "wordy_one", "class Long: pass", "esault.test.words", long="Long")
    assert words.names() == ["text", "long"]
    assert words.place("long") == "wordy_one:Long"
    assert words.find("long").__name__ == "Long"


def test_the_engines_own_and_the_programs_come_before_a_packages(words, site):
    install(site, "wordy_two", "class Text: pass", "esault.test.words", text="Text", mine="Text")
    words.register("mine", dict)
    assert words.names() == ["text", "mine"]
    assert words.find("text").__name__ == "TextWrapper"
    assert words.find("mine") is dict


def test_two_packages_with_one_name_are_named(words, site):
    install(site, "wordy_three", "class Long: pass", "esault.test.words", long="Long")
    install(site, "wordy_four", "class Long: pass", "esault.test.words", long="Long")
    with pytest.raises(
        UsageError, match="'long' comes from the package wordy_four and the package wordy_three: uninstall all of them"
    ):
        words.find("long")


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("raise RuntimeError('no')", "cannot be loaded: RuntimeError: no"),
        ("Other = 1", "cannot be loaded: AttributeError"),
        ("Long = 1", "is no class"),
    ],
)
def test_a_broken_package_is_named(words, site, source, says, request):
    name = f"wordy_broken_{abs(hash(request.node.name))}"
    install(site, name, source, "esault.test.words", long="Long")
    with pytest.raises(UsageError, match=f"word 'long' of the package {name}") as caught:
        words.find("long")
    assert says in str(caught.value)
