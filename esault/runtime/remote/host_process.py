"""One run's processes on another host than its driver's: started by that host's node, ended with the run, the node or the driver.

    main([ORDER, HOST, ADDRESS, PARENT, VERSION])

ORDER is a file with what the driver asked for (`StartHost`); it is removed. VERSION is what is installed, as the node knows it. On standard output the node is told one line: `port N`, where
the driver can come in, `refused TEXT`, or `later TEXT`: it may be possible then. The code that was shipped lies in the run's own folder and goes with it.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

from esault.cluster.codec import unpack
from esault.cluster.messages import ENDED, StartHost
from esault.cluster.shipment import unload
from esault.cluster.versions import installed
from esault.errors import EsaultError, UsageError
from esault.runtime.actors import system
from esault.runtime.messages import DriverStarted, HostContext, Notice, RunEnded, RunSpec
from esault.runtime.process.console import ConsoleReader
from esault.runtime.process.log_output import LOG_FORMAT, configure
from esault.runtime.process.owner import Owner, end_with
from esault.runtime.process.run_dir import RunDir
from esault.topology.inherited_plan import leave_plan
from esault.topology.located import Located

__all__ = ["main"]

#: the run's own key, in its folder
KEY = "key"

log = logging.getLogger("esault.node")


def main(arguments: list[str]) -> int:
    """See the module."""
    order, host, address, parent, version = arguments
    end_with(int(parent))
    # What the user's code prints at its import is no answer to the node: it goes to its log.
    answer = os.dup(1)
    os.dup2(2, 1)
    for number in (signal.SIGTERM, signal.SIGINT):  # sent to all processes at once they are the node's to deal with
        signal.signal(number, lambda signum, frame: None)
    data = Path(order).read_bytes()
    os.unlink(order)
    if version != installed():  # before the order is read, which is the node's version's
        _tell(
            answer,
            f"refused host {host} has eSault {installed()} by now, and its node is {version}: start the node again",
        )
        return 1
    order = unpack(data)
    assert isinstance(order, StartHost)
    configure(order.log_level, os.environ.get(LOG_FORMAT, "text"), dated=True)
    owner = Owner.current()
    held: RunDir | None = None
    try:
        held = RunDir(owner)
        spec = _spec(order, host, address, held.path, owner)
    except (OSError, UsageError) as error:
        if held is not None:
            shutil.rmtree(held.path, ignore_errors=True)
        # no room, or no descriptor is left: there may be some later
        word = "later" if isinstance(error, OSError) else "refused"
        _tell(answer, f"{word} host {host} cannot make the run's folder: {error}")
        return 1
    run_dir = held.path
    try:
        # its modules are in every child then, and what is wrong is said now
        leave_plan(spec.located, spec.params, spec.located.build(spec.params).plan())
    except BaseException as error:
        shutil.rmtree(run_dir, ignore_errors=True)  # no actor system will: the code that was shipped does not stay
        if not isinstance(error, EsaultError):
            raise
        _tell(answer, f"refused the topology cannot be built on host {host}: {error}")
        return 1
    console = ConsoleReader(lambda mark, text: None)
    spec = replace(spec, console_fd=console.write_fd)
    handle = system.start(
        secrets.token_bytes(32),
        title=f"esault {order.name}",
        scratch=run_dir,
        modules=("esault.runtime.remote.host_agent", "esault.runtime.worker.keeper"),
    )
    try:
        from esault.runtime.remote.host_agent import HostAgent, Receive
        from esault.runtime.worker.keeper import Keeper

        keeper = handle.create(Keeper)
        agent = handle.create(HostAgent)
        handle.tell(agent, Receive(spec, keeper, console.read_fd))
        why = _watch(handle, held, answer)
    finally:
        handle.shutdown(0.5)
    log.log(logging.INFO if why == ENDED else logging.WARNING, "run %s on host %s is over: %s", order.run, host, why)
    return 0


def _spec(order: StartHost, host: str, address: str, run_dir: Path, owner: Owner) -> RunSpec:
    key = run_dir / KEY
    with open(os.open(key, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
        file.write(order.key)
    code = run_dir / "code"
    code.mkdir()
    unload(order.files, code)
    cwd = order.cwd if os.path.isdir(order.cwd) else str(code)
    try:
        os.chdir(cwd)
    except OSError as error:
        raise UsageError(f"{cwd} cannot be entered: {error.strerror or error}") from None
    path = None if order.path is None else str(code / order.path)
    return RunSpec(
        located=Located(order.function, str(code), cwd, path=path, module=order.module),
        params=dict(order.params),
        run=order.run,
        name=order.name,
        run_dir=str(run_dir),
        settings=order.settings,
        owner=owner,
        console_fd=-1,
        host=host,
        slots=order.slots,
        clock_offset=order.clock_offset,
        state_dir=order.state_dir,
        host_context=HostContext(host, address, str(key), str(run_dir / "lease")),
    )


def _watch(handle: system.ActorSystemHandle, folder: RunDir, answer: int) -> str:
    """Until the host agent says that all is over, or nothing is left to say it; why."""
    from esault.runtime.actors.actor import unpack as messages_in
    from esault.runtime.remote.host_agent import Opened

    why, agent = "its host agent has died", None
    while True:
        if folder.lost:  # with the code in it, which newcomers need: the run goes on without this host
            return f"its folder {folder.path} was removed by another program"
        try:
            received: Any = handle.listen(0.1)
        except EsaultError as error:
            return str(error)
        for message in [] if received is None else messages_in(received):
            if isinstance(message, Opened):
                _tell(answer, f"port {message.port}")
            elif isinstance(message, DriverStarted):
                agent = message.process
            elif isinstance(message, Notice):
                why = message.text
            elif isinstance(message, RunEnded):
                return why
        if not handle.alive() or (agent is not None and not agent.alive()):
            return why


def _tell(answer: int, line: str) -> None:
    """The node reads one line."""
    os.write(answer, (line.replace("\n", "\\n") + "\n").encode())
