"""`esault ui`."""

from __future__ import annotations

import signal
import sys
import threading

import click

__all__ = ["command"]


@click.command("ui")
@click.argument("report", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--port",
    "address",
    default="8080",
    show_default=True,
    metavar="[ADDRESS:]PORT",
    help="Where it listens; 0: any port that is free.",
)
@click.option(
    "--ui-control",
    "control",
    is_flag=True,
    help="Let the page scale, throttle and stop runs, by a token in its address.",
)
@click.option(
    "--ui-tls",
    "tls",
    nargs=2,
    type=click.Path(),
    metavar="CERTIFICATE KEY",
    help="Files for TLS, needed beyond this machine.",
)
def command(report: tuple[str, ...], address: str, control: bool, tls: tuple[str, str] | None) -> None:
    """Show all running topologies of this user on a page in a browser, and the REPORTs of runs that have ended.

    Ctrl-C ends it; runs go on. `esault run --ui PORT` shows one run, with its timeline from the beginning.
    """
    from esault.ui.late_server import LateServer
    from esault.ui.web.address import parse
    from esault.ui.web.application import WebApplication
    from esault.ui.web.other_runs import OtherRuns, reports

    place = parse("--port", address, control, tls)
    application = WebApplication(OtherRuns(reports(report)), place.token, read_too=place.beyond)
    server = LateServer("--port", place.host, place.port, application, place.tls, guarded=not place.beyond)
    if not server.start(lambda text: print(text, file=sys.stderr)):
        raise SystemExit(1)
    print(f"web UI: {server.url}/" + (f"#token={place.token}" if place.token else ""), flush=True)
    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    ended.wait()
    server.close()
