"""`run` takes what the command takes: here in one process, with what shows the run to others."""

from __future__ import annotations

import re
import urllib.request

import pytest

from esault import Bolt, Topology, by_key, run
from esault.errors import UsageError
from esault.sinks import Collect
from esault.sources import Items, Paced


class Count(Bolt):
    def __init__(self):
        self.total = 0

    def process(self, key, value):
        self.total += value
        self.emit(key, self.total)


def topology():
    t = Topology("counted")
    numbers = t.spout("numbers", Paced(Items([(i % 5, 1) for i in range(2000)]), 4000.0))
    numbers.bolt("count", Count, grouping=by_key()).sink("totals", Collect())
    return t


class View:
    """Asks the servers that a run has told of, once it shows how it stands."""

    def __init__(self):
        self.told, self.pages = [], {}

    def line(self, mark, text):
        pass

    def notice(self, text):
        self.told.append(text)

    def update(self, snapshot):
        for url in re.findall(r"http://\S+", " ".join(self.told)):
            if url not in self.pages:
                self.pages[url] = urllib.request.urlopen(url, timeout=10).read().decode()


def test_a_run_from_a_program_is_shown_as_one_of_the_command():
    pytest.importorskip("prometheus_client")
    view = View()
    report = run(topology, engine="local", fixed={"count": 2}, metrics=0, ui="127.0.0.1:0", view=view)
    assert max(value for _, value in report.collected["totals"]) == 400
    assert report.units["count"].parallelism[-1][1] == 2
    assert any("esault" in page for page in view.pages.values()), view.told


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"fixed": "count"}, "fixed='count'"),
        ({"fixed": ["cuont"]}, "cuont"),
        ({"fixed": {"count": 2}, "parallelism": {"count": 3}}, "is fixed at 2, and parallelism says 3"),
        ({"fixed": ["count"], "policy": {"count": "probe"}}, "the policy probe would scale it"),
        ({"ui_control": True}, "--ui"),
        ({"metrics": "nowhere:x"}, "--metrics"),
        ({"otlp": "localhost"}, "--otlp"),
        ({"heartbeat_timeout": 0.1}, "0.1 s"),
        ({"checkpoint_timeout": 3.0}, "checkpoints"),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_starts(options, said):
    with pytest.raises(UsageError, match=said):
        run(topology, engine="local", **options)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"checkpoint": "5"}, "checkpoint='5' (str): it is a number of seconds, such as 5"),
        ({"checkpoint": True}, "checkpoint=True (bool): it is a number of seconds"),
        ({"seconds": "5"}, "seconds='5' (str): it is a number of seconds"),
        ({"slots": 0}, "slots=0: a run needs 1 at least"),
        ({"slots": "4"}, "slots='4' (str): it is a whole number"),
        ({"parallelism": ["count=2"]}, "parallelism=['count=2'] (list): it is a dict of whole numbers by unit"),
        ({"parallelism": {"count": "2"}}, "parallelism says '2' (str) of 'count': it is a dict of whole numbers"),
        ({"fixed": {"count": 2.5}}, "fixed says 2.5 (float) of 'count'"),
        ({"report": 5}, "report=5 (int): it is a path"),
        ({"params": ["n"]}, "params=['n'] (list): it is a dict"),
        ({"chaining": "no"}, "chaining='no' (str): it is True or False"),
    ],
)
def test_an_option_of_another_type_is_refused_by_its_name(option, said):
    with pytest.raises(UsageError, match=re.escape(said)):
        run(topology, engine="local", **option)
