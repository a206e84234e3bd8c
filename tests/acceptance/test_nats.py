"""From a stream of NATS to another: scaled live, killed, the server killed, the run killed and resumed; each message counts once."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import nats_server
import pytest
import through_nats
from test_acknowledged import kill_run

pytestmark = pytest.mark.slow
PLACE = f"{Path(through_nats.__file__)}:topology"
OPTIONS = ("--checkpoint", "0.2", "--policy", "none")
#: a word stays in its subject, so that its order can be checked
SUBJECTS, WORDS = 4, 5


@pytest.fixture
def server():
    pytest.importorskip("nats", reason="nats-py is not installed: pip install 'esault[nats]'")
    try:
        with nats_server.running() as found:
            yield found
    except nats_server.NotToBeHadError as error:
        pytest.skip(str(error))


def test_each_message_counts_once(command, server):
    sent: Counter[str] = Counter()
    number = 0
    server.stream(name="IN")
    # Looks into what was stored must do, and not what the server remembers.
    server.stream(name="OUT", duplicate_window=0.1)

    def more():
        nonlocal number
        for word in range(WORDS):
            for subject in range(SUBJECTS):
                name = f"w{subject}-{word}"
                some = range(number, number + 25)
                server.send("IN", [(str(subject), b"%d" % each) for each in some], Word=name)
                sent[name] += len(some)
                number += len(some)

    def all_landed():
        return server.ask(lambda js: js.stream_info("OUT")).state.messages >= number

    more()
    options = {"url": server.url, "subjects": SUBJECTS}
    command.start(PLACE, *OPTIONS, **options)
    command.running()
    command.until(lambda: command.scaled("messages", 3))
    command.until(lambda: command.scaled("count", 3))
    more()
    command.processes("messages/")[0].kill()
    command.until(lambda: command.status().get("restores") == 1 and command.status().get("phase") == "running")
    more()
    command.processes("count/")[0].kill()
    command.until(lambda: command.status().get("restores") == 2 and command.status().get("phase") == "running")
    more()
    command.until(all_landed)
    more()
    server.stop()
    server.start()
    command.until(lambda: command.scaled("messages", 1))
    more()
    command.until(all_landed)
    more()
    kill_run(command)
    more()
    command.start(PLACE, *OPTIONS, "--resume", "--parallelism", "messages=2", **options)
    command.running()
    more()
    command.until(all_landed)
    code, _, err = command.stop()
    assert code == 0, err
    found = [(message.subject.removeprefix("OUT."), json.loads(message.data)) for message in server.messages("OUT")]
    assert Counter(value["number"] for _, value in found) == Counter(range(number))
    assert all(value["in_order"] for _, value in found)
    # A key that moved has rows in two sinks, which commit one checkpoint side by side: their order is the bolt's, which it has checked.
    counted = defaultdict(list)
    for word, value in found:
        counted[word].append(value["count"])
    assert {word: sorted(counts) for word, counts in counted.items()} == {
        w: [*range(1, n + 1)] for w, n in sent.items()
    }
