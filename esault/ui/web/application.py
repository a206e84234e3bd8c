"""The application behind the page: its files, the runs that it shows, their events, and requests to them.

Nothing is loaded from elsewhere, and a strict policy tells the browser so. Requests that change a run need a token, which only
who started the page has seen; beyond this machine everything needs it.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any, Protocol
from urllib.parse import parse_qs

from esault.errors import EsaultError, UsageError
from esault.payload.json_text import strict_json
from esault.runtime.session.control_client import Running
from esault.ui.web.dead_letter_pages import sent_again, shown
from esault.ui.web.history import History
from esault.ui.web.what_if import WhatIf

__all__ = ["Runs", "WebApplication"]

#: bytes of a request to a run, at most
MOST_BODY = 4096
_KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES = {
    "/": "index.html",
    **{
        f"/{name}": name
        for name in (
            *("web.css", "web.js", "draw.js", "icon.svg"),
            *("vendor/uPlot.iife.min.js", "vendor/uPlot.min.css", "vendor/dagre.min.js"),
        )
    },
}
_HEADERS = [
    (
        "Content-Security-Policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'",
    ),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cache-Control", "no-store"),
]

StartResponse = Callable[[str, list[tuple[str, str]]], Any]


class Runs(Protocol):
    """The runs that a page shows."""

    def list(self) -> Iterable[Mapping[str, Any]]:
        """Return what there is: each has "run", its id, "topology" and "control", whether it takes requests; "report" where it has ended."""
        ...

    def history(self, run: str) -> History:
        """Return what is known of a run. Raises KeyError."""
        ...

    def running(self, run: str) -> Running:
        """Return the control socket and status of a run. Raises UsageError where it takes no requests."""
        ...

    def ask(self, run: str, request: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        """Send a request, as of `esault scale` and the like; answers as they come. Raises UsageError."""
        ...


class WebApplication:
    """Answers by WSGI."""

    def __init__(self, runs: Runs, token: str = "", read_too: bool = False) -> None:
        """`token` is asked for in requests to a run, empty: there are none; with `read_too` in all but the page's files."""
        self._runs, self._token, self._read_too = runs, token, read_too
        self._what_if = WhatIf()

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        path, method = environ.get("PATH_INFO", "/"), environ["REQUEST_METHOD"]
        query = {name: values[-1] for name, values in parse_qs(environ.get("QUERY_STRING", "")).items()}
        if path in _FILES and method == "GET":
            name = _FILES[path]
            content = files("esault.ui.web").joinpath("static", *name.split("/")).read_bytes()
            return _answer(start_response, "200 OK", content, _KINDS[name.rpartition(".")[2]])
        given = environ.get("HTTP_X_ESAULT_TOKEN") or query.get("token", "")
        known = bool(self._token) and hmac.compare_digest(given.encode(), self._token.encode())
        if self._read_too and not known:
            return _refuse(start_response, "403 Forbidden", "open the address with the token that the command printed")
        if path == "/runs" and method == "GET":
            listed = [
                {**each, "control": bool(each.get("control")) and bool(self._token)} for each in self._runs.list()
            ]
            return _answer(start_response, "200 OK", strict_json(listed, default=str).encode(), "application/json")
        if path == "/events" and method == "GET":
            try:
                history = self._runs.history(query.get("run", ""))
            except KeyError:
                return _refuse(start_response, "404 Not Found", "there is no such run")
            start_response("200 OK", [("Content-Type", "text/event-stream"), *_HEADERS])
            return history.events()
        if path == "/deadletters" and method == "GET":
            try:
                said = shown(self._dead_letter_paths(query.get("run", "")))
            except KeyError:
                return _refuse(start_response, "404 Not Found", "there is no such run")
            except EsaultError as error:
                return _refuse(start_response, "409 Conflict", str(error))
            return _answer(start_response, "200 OK", strict_json(said, default=str).encode(), "application/json")
        if path.startswith("/state/") and method == "GET":
            return self._state(start_response, path, query)
        if path == "/whatif" and method == "GET":
            try:
                tried = self._what_if.ask(self._runs.history(query.get("run", "")).recorded())
            except KeyError:
                return _refuse(start_response, "404 Not Found", "there is no such run")
            except UsageError as error:
                return _answer(
                    start_response, "200 OK", strict_json({"error": str(error)}).encode(), "application/json"
                )
            return _answer(start_response, "200 OK", strict_json({"tried": tried}).encode(), "application/json")
        if path == "/do" and method == "POST":
            if not known:
                why = "look only: start the page with --ui-control" if not self._token else "the token is not right"
                return _refuse(start_response, "403 Forbidden", why)
            return self._do(environ, start_response, query.get("run", ""))
        return _refuse(start_response, "404 Not Found", "nothing is here")

    def _state(self, start_response: StartResponse, path: str, query: Mapping[str, str]) -> Iterable[bytes]:
        """Answer /state/UNIT and /state/UNIT/KEY: the newest state, from the process that has it."""
        unit, _, key = path.encode("latin-1").decode(errors="replace").removeprefix("/state/").partition("/")
        named = query.get("run", "")
        found = [str(each["run"]) for each in self._runs.list() if named in ("", each["run"], each["topology"])]
        if len(found) != 1:
            why = "say which run by ?run=NAME" if found else "there is no such run"
            return _refuse(start_response, "404 Not Found", why)
        try:
            limit = int(query.get("limit", 20))
            request = {"do": "state", "unit": unit, "key": key, "prefix": query.get("prefix", ""), "limit": limit}
            answers = list(self._runs.ask(found[0], request))
        except ValueError as error:
            return _refuse(start_response, "400 Bad Request", str(error))
        except EsaultError as error:
            return _refuse(start_response, "409 Conflict", str(error))
        told = {"unit": unit, "of": "newest", "keys": answers[-1]["keys"], "found": answers[-1]["found"]}
        if key and not told["found"]:
            return _refuse(start_response, "404 Not Found", f"unit {unit!r} has no state for key {key!r} now")
        return _answer(start_response, "200 OK", strict_json(told).encode(), "application/json")

    def _dead_letter_paths(self, run: str) -> Iterable[str]:
        """Return where a run keeps dead letters, also one that takes no requests: it is on Spark, starting or over. Raises KeyError."""
        try:
            paths: Iterable[str] = self._runs.running(run).status.get("dead_letter_paths", ())
        except UsageError:
            return self._runs.history(run).dead_letter_paths
        return paths

    def _do(self, environ: dict[str, Any], start_response: StartResponse, run: str) -> Iterable[bytes]:
        origin = environ.get("HTTP_ORIGIN")
        if origin is not None and origin.partition("://")[2] != environ.get("HTTP_HOST"):
            return _refuse(start_response, "403 Forbidden", "a page of another site asked for this")
        try:
            length = int(environ.get("CONTENT_LENGTH") or 0)
            if not 0 < length <= MOST_BODY:
                return _refuse(start_response, "400 Bad Request", f"a request has 1 to {MOST_BODY} bytes")
            request = json.loads(environ["wsgi.input"].read(length))
            if isinstance(request, dict) and request.get("do") == "send_again":
                answers = [sent_again(self._runs.running(run), request)]
            else:
                answers = [dict(each) for each in self._runs.ask(run, request)]
        except (ValueError, KeyError) as error:
            return _refuse(start_response, "400 Bad Request", str(error))
        except EsaultError as error:
            return _refuse(start_response, "409 Conflict", str(error))
        said = strict_json(answers[-1] if answers else {}, default=str).encode()
        return _answer(start_response, "200 OK", said, "application/json")


def _answer(start_response: StartResponse, status: str, body: bytes, kind: str) -> Iterable[bytes]:
    start_response(status, [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(body))), *_HEADERS])
    return [body]


def _refuse(start_response: StartResponse, status: str, why: str) -> Iterable[bytes]:
    return _answer(start_response, status, strict_json({"error": why}).encode(), "application/json")
