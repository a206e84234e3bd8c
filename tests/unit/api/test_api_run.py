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
