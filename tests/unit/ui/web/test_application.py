"""The page's application: who is answered, what is refused, and that nothing comes from elsewhere."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import esault.ui.web
from esault.counters import UnitCounts, declared
from esault.errors import UsageError
from esault.runtime.session.control_client import Running
from esault.ui.web import application, dead_letter_pages
from esault.ui.web.application import _FILES, WebApplication
from esault.ui.web.history import History

STATIC = Path(esault.ui.web.__file__).parent / "static"


class Runs:
    def __init__(self):
        self.asked = []
        self.known = History()
        self.dead = []

    def list(self):
        yield {"run": "r1", "topology": "words", "control": True}

    def history(self, run):
        return {"r1": self.known}[run]

    def running(self, run):
        if run != "r1":
            raise UsageError("that run has ended")
        return Running(Path("nowhere"), {"dead_letter_paths": self.dead})

    def ask(self, run, request):
        self.asked.append((run, request))
        if request["do"] == "state":
            found = [] if request["key"] == "dog" else [{"key": request["key"] or "cat", "state": {"n": 3}}]
            if request["unit"] != "count":
                raise UsageError(f"unit {request['unit']!r} keeps no state by key")
            return iter([{"begun": True}, {"done": True, "keys": 7, "found": found}])
        if request.get("n", 1) < 1:
            raise UsageError("count cannot have 0 sub-units")
        return iter([{"begun": True}, {"done": True, "after": request.get("n")}])


@pytest.fixture
def runs():
    return Runs()


def call(application, path, method="GET", body=b"", **more):
    path, _, query = path.partition("?")
    said = {}
    environ = {
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "REQUEST_METHOD": method,
        "HTTP_HOST": "127.0.0.1:8080",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": io.BytesIO(body),
        **more,
    }
    answer = application(environ, lambda status, headers: said.update(status=int(status[:3]), headers=dict(headers)))
    said["body"] = b"".join(answer)
    return said


def scale(application, n=3, **more):
    return call(
        application, "/do?run=r1", "POST", json.dumps({"do": "scale", "unit": "count", "n": n}).encode(), **more
    )


def test_every_file_of_the_page_is_there_and_asks_for_nothing_from_elsewhere(runs):
    application = WebApplication(runs)
    for path in _FILES:
        said = call(application, path)
        assert said["status"] == 200 and said["body"], path
        assert "default-src 'none'" in said["headers"]["Content-Security-Policy"]
    own = [STATIC / name for name in ("index.html", "web.css", "web.js", "draw.js")]
    for file in own:
        addresses = re.findall(r"https?://[^\s\"']+", file.read_text())
        assert set(addresses) <= {"http://www.w3.org/2000/svg"}, file
    assert not re.search(r"<script(?! src)|style=|innerHTML|\bon\w+=\"", "".join(file.read_text() for file in own))


def test_licences_of_what_is_vendored_are_kept():
    vendor = STATIC / "vendor"
    for name in ("uPlot", "dagre"):
        assert (
            "MIT" in (vendor / f"{name}.LICENSE").read_text()
            or "Permission is hereby granted" in (vendor / f"{name}.LICENSE").read_text()
        )


def test_events_of_a_run_are_a_stream_and_one_that_is_not_there_is_said(runs):
    runs.known.end(0)
    said = call(WebApplication(runs), "/events?run=r1")
    assert said["headers"]["Content-Type"] == "text/event-stream"
    assert b"event: end" in said["body"]
    assert call(WebApplication(runs), "/events?run=r2")["status"] == 404


def test_a_run_is_changed_with_the_token_alone(runs):
    application = WebApplication(runs, "secret")
    assert scale(application)["status"] == 403
    assert scale(application, HTTP_X_ESAULT_TOKEN="wrong")["status"] == 403
    assert not runs.asked
    said = scale(application, HTTP_X_ESAULT_TOKEN="secret", HTTP_ORIGIN="http://127.0.0.1:8080")
    assert (said["status"], json.loads(said["body"])) == (200, {"done": True, "after": 3})
    assert runs.asked == [("r1", {"do": "scale", "unit": "count", "n": 3})]


def test_without_a_token_one_can_only_look(runs):
    application = WebApplication(runs)
    said = scale(application, HTTP_X_ESAULT_TOKEN="")
    assert said["status"] == 403 and b"--ui-control" in said["body"]
    assert json.loads(call(application, "/runs")["body"])[0]["control"] is False


def test_a_page_of_another_site_changes_nothing(runs):
    application = WebApplication(runs, "secret")
    said = scale(application, HTTP_X_ESAULT_TOKEN="secret", HTTP_ORIGIN="http://evil.example")
    assert said["status"] == 403 and not runs.asked


def test_what_is_refused_is_said_with_its_reason(runs):
    application = WebApplication(runs, "secret")
    said = scale(application, n=0, HTTP_X_ESAULT_TOKEN="secret")
    assert (said["status"], json.loads(said["body"])["error"]) == (409, "count cannot have 0 sub-units")
    for body in (b"", b"{", b"x" * 5000):
        assert call(application, "/do?run=r1", "POST", body, HTTP_X_ESAULT_TOKEN="secret")["status"] == 400
    assert call(application, "/../../etc/passwd")["status"] == 404


def test_beyond_this_machine_everything_but_the_files_needs_the_token(runs):
    application = WebApplication(runs, "secret", read_too=True)
    assert call(application, "/")["status"] == 200
    assert call(application, "/runs")["status"] == 403
    assert call(application, "/events?run=r1")["status"] == 403
    assert call(application, "/runs?token=secret")["status"] == 200


def written(folder, count):
    """Dead letters in a file, of which the first was sent again."""
    lines = []
    for i in range(count):
        told = {"id": f"d{i}", "unit": "count", "sub_unit": 3, "hook": "process", "key": "k", "value": i, "time": i}
        lines.append(
            json.dumps(
                {**told, "event_time": None, "at": "input:0", "packed": "gA==", "error": "E: no", "traceback": "T"}
            )
        )
    (folder / "dead.3.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "dead.3.jsonl.sent").write_text("d0\n")
    return [str(folder / "dead.jsonl")]


def test_the_newest_dead_letters_are_told_and_how_many_there_are(runs, tmp_path):
    runs.dead = written(tmp_path, 60)
    said = json.loads(call(WebApplication(runs), "/deadletters?run=r1")["body"])
    assert (said["count"], said["sent"], said["kinds"]) == (60, 1, [["count", "E", 59]])
    assert [each["id"] for each in said["newest"]] == [f"d{i}" for i in range(59, 9, -1)]
    assert "packed" not in said["newest"][0]
    assert call(WebApplication(runs), "/deadletters?run=other")["status"] == 404


def test_dead_letters_of_a_run_that_takes_no_requests_are_found_by_what_it_says_of_its_units(runs, tmp_path):
    def none_now(run):
        raise UsageError("it is on Spark")

    runs.running = none_now
    assert json.loads(call(WebApplication(runs), "/deadletters?run=r1")["body"])["count"] == 0
    unit = SimpleNamespace(dead_letter_paths=tuple(written(tmp_path, 60)))
    runs.known.see(SimpleNamespace(units=(unit, unit)))
    assert json.loads(call(WebApplication(runs), "/deadletters?run=r1")["body"])["count"] == 60


def test_they_are_sent_again_with_the_token_alone_and_once(runs, tmp_path, monkeypatch):
    runs.dead = written(tmp_path, 4)
    sent = []
    monkeypatch.setattr(
        dead_letter_pages, "send_again", lambda place, dead: sent.append([d.id for d in dead]) or (["d1"], {"d2": "no"})
    )
    application = WebApplication(runs, "secret")
    body = json.dumps({"do": "send_again", "ids": ["d1", "d2"]}).encode()
    assert call(application, "/do?run=r1", "POST", body)["status"] == 403
    assert not sent
    said = call(application, "/do?run=r1", "POST", body, HTTP_X_ESAULT_TOKEN="secret")
    assert json.loads(said["body"]) == {"done": True, "sent": 1, "refused": {"no": 1}}
    call(application, "/do?run=r1", "POST", b'{"do": "send_again"}', HTTP_X_ESAULT_TOKEN="secret")
    assert sent == [["d1", "d2"], ["d1", "d2", "d3"]]
    wrong = call(application, "/do?run=r1", "POST", b'{"do": "send_again", "ids": "d1"}', HTTP_X_ESAULT_TOKEN="secret")
    assert wrong["status"] == 409


@pytest.mark.parametrize(
    "path, asked",
    [
        ("/state/count/cat", ("count", "cat", "", 20)),
        ("/state/count/a/b", ("count", "a/b", "", 20)),  # a key may have one
        ("/state/count/" + "käse".encode().decode("latin-1"), ("count", "käse", "", 20)),  # as WSGI has it
        ("/state/count?prefix=c&limit=5", ("count", "", "c", 5)),
        ("/state/count/cat?run=words", ("count", "cat", "", 20)),
        ("/state/count/cat?run=r1", ("count", "cat", "", 20)),
    ],
)
def test_a_key_is_asked_for_its_state(runs, path, asked):
    said = call(WebApplication(runs), path)
    assert said["status"] == 200
    assert {**json.loads(said["body"]), "found": ...} == {"unit": "count", "of": "newest", "keys": 7, "found": ...}
    ((run, request),) = runs.asked
    assert (run, tuple(request[name] for name in ("unit", "key", "prefix", "limit"))) == ("r1", asked)


@pytest.mark.parametrize(
    "path, status, why",
    [
        ("/state/count/dog", 404, "has no state for key"),
        ("/state/lines", 409, "keeps no state by key"),
        ("/state/count?limit=many", 400, "many"),
        ("/state/count?run=other", 404, "there is no such run"),
    ],
)
def test_what_state_is_not_there_is_said(runs, path, status, why):
    said = call(WebApplication(runs), path)
    assert (said["status"], why in json.loads(said["body"])["error"]) == (status, True)


def test_beyond_this_machine_state_needs_the_token_and_several_runs_a_name(runs, monkeypatch):
    application = WebApplication(runs, "secret", read_too=True)
    assert call(application, "/state/count/cat")["status"] == 403 and not runs.asked
    assert call(application, "/state/count/cat?token=secret")["status"] == 200
    monkeypatch.setattr(runs, "list", lambda: [{"run": f"r{i}", "topology": "words"} for i in (1, 2)])
    said = call(WebApplication(runs), "/state/count/cat")
    assert said["status"] == 404 and b"?run=" in said["body"]


def test_the_page_has_a_column_for_each_counter_that_is_something_to_look_at():
    (named,) = re.findall(r"const trouble = (\[.*?\])", (STATIC / "web.js").read_text())
    assert json.loads(named) == [name for name, counter in declared(UnitCounts).items() if counter.trouble]


def test_dead_letters_that_cannot_be_read_are_said(runs, monkeypatch):
    def refused(paths):
        raise UsageError("it is no folder")

    monkeypatch.setattr(application, "shown", refused)
    answer = call(WebApplication(runs), "/deadletters?run=r1")
    assert (answer["status"], b"it is no folder" in answer["body"]) == (409, True)


def test_what_policies_would_have_done_is_told_or_why_not(runs):
    page = WebApplication(runs)
    assert call(page, "/whatif?run=other")["status"] == 404
    refused = json.loads(call(page, "/whatif?run=r1")["body"])
    assert refused == {"error": "the run has just begun: there is no load yet to try policies on"}
    page._what_if = SimpleNamespace(ask=lambda recorded: [recorded["slots"]])
    assert json.loads(call(page, "/whatif?run=r1")["body"]) == {"tried": [0]}
