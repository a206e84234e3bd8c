"""Keeps strangers out of the actor system.

Thespian listens on all interfaces and unpickles whatever arrives, and a malformed length can end a process. `install`
puts this right, in the process that will start the system; all others are forked from it and so inherit it:

- every socket is bound to, and every address names, 127.0.0.1; no name is looked up, no public address is asked for;
- every frame is signed with the run's secret, and checked before anything of it is unpickled (see `signature`);
- what fails is closed without an answer, counted, and logged once a second at most;
- of the connections that have not yet shown a signed frame only the newest 64 are kept, and none for over 10 s.

What is neither hidden from, nor proof against, a process that may read the loopback traffic (root): frames may be replayed.
"""

from __future__ import annotations

import contextlib
import inspect
import socket
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from esault.runtime.actors.signature import Refusals, SignedBuffer, Signer

__all__ = ["LOOPBACK", "MAX_STRANGERS", "install", "moved", "refused", "require_parameters", "signer"]

LOOPBACK = "127.0.0.1"
#: connections to one process that have not yet shown a signed frame
MAX_STRANGERS = 64
_STRANGER_PERIOD = timedelta(seconds=10)

_refusals = Refusals()
_signer: Signer | None = None


def refused() -> int:
    """Return the number of connections that this process has refused, those of its forefathers until the fork included."""
    return _refusals.count


def install(secret: bytes) -> None:
    """Guard every actor system that this process starts from now on with this secret (16 bytes at least).

    Comes before the system starts; may come again, with another secret, when no system of this process is running.
    Raises `ValueError` for a short secret, `RuntimeError` when a name that it replaces has moved in this Thespian.
    """
    if len(secret) < 16:
        raise ValueError(f"the run's secret has {len(secret)} bytes; 16 is the least: use secrets.token_bytes(32)")
    address, tcp, transports, buffers = _import_transport()
    global _signer
    _signer = Signer(secret)
    try:
        if not getattr(tcp.TCPTransport, "esault_guard", False):
            _bind_to_loopback(address)
            _replace_buffers(tcp, transports)
            tcp.TCPTransport.esault_guard = True
        tcp.serializer = _signer
        # made when Thespian was imported, by plain pickle
        tcp.ackMsg = _frame("ACK", buffers.ackPacket)
        tcp.ackDataErrMsg = _frame("ACK+DATAERR", buffers.ackDataErrPacket)
        _check(address, tcp)
    except (AttributeError, TypeError, LookupError, OSError) as error:
        raise moved(str(error)) from error


def moved(what: str) -> RuntimeError:
    """The error for a Thespian that is not as expected."""
    from importlib import metadata

    return RuntimeError(
        f"Thespian {metadata.version('thespian')} is not built as esault expects ({what}), so the actor system was not "
        f"started; esault is tested with Thespian 4.0.1: pip install 'thespian==4.0.1'"
    )


def _frame(name: str, packet: object) -> bytes:
    _require(packet == name, f"the packet {name}")
    body = signer().dumps(packet)
    return b"%d>%b" % (len(body), body)


def signer() -> Signer:
    """Return what signs the messages of this run. Raises RuntimeError before `install`."""
    if _signer is None:
        raise RuntimeError("guard.install(secret) must come before any message")
    return _signer


def _buffer(loads: object = None) -> SignedBuffer:
    """Called by Thespian as its own `ReceiveBuffer(loads)`."""
    return SignedBuffer(signer(), _refusals)


def _import_transport() -> tuple[Any, Any, Any, Any]:
    with _no_look_ups():
        try:
            from thespian.system.transport import IPBase, TCPTransport, asyncTransportBase, streamBuffer
        except ImportError as error:
            raise moved(str(error)) from error
    return IPBase, TCPTransport, asyncTransportBase, streamBuffer


@contextlib.contextmanager
def _no_look_ups() -> Iterator[None]:
    """While Thespian is first imported: it asks the resolver for this host's names, which may take seconds."""
    if "thespian.system.transport.IPBase" in sys.modules:
        yield
        return
    names = socket.gethostname, socket.getfqdn
    socket.gethostname, socket.getfqdn = lambda: "localhost", lambda name="": "localhost"
    try:
        yield
    finally:
        socket.gethostname, socket.getfqdn = names


def _bind_to_loopback(module: Any) -> None:
    address = module.IPActorAddress
    original = address.__init__
    require_parameters(original, "self af socktype proto baseaddr port external")
    _require(isinstance(address.bindArgs, property), "IPActorAddress.bindArgs")

    def loopback(
        self: Any, af: int, socktype: int, proto: int, baseaddr: object, port: int, external: object = False
    ) -> None:
        # `external` asks for an address that other hosts can reach: there is none here
        original(self, af, socktype, proto, LOOPBACK, port, False)

    address.__init__ = loopback
    address.bindArgs = property(lambda self: ((LOOPBACK, self.sockname[1]),))


def _replace_buffers(tcp: Any, transports: Any) -> None:
    transport = tcp.TCPTransport
    accept, added = transport._acceptNewIncoming, transport._addedDataToIncoming
    require_parameters(accept, "self")
    require_parameters(added, "self inc skipFinish has_exclusive_flag")
    for module, name in (
        (tcp, "ReceiveBuffer"),
        (tcp, "serializer"),
        (tcp, "MAX_INCOMING_SOCKET_PERIOD"),
        (tcp, "exclusive_processing"),
        (transports, "exclusive_processing"),
    ):
        _require(hasattr(module, name), f"{module.__name__}.{name}")

    def accept_few(self: Any) -> None:
        strangers = [each for each in self._incomingSockets.items() if each[1].fromAddress.addressDetails is None]
        if len(strangers) >= MAX_STRANGERS:
            fd, oldest = min(strangers, key=lambda item: item[1]._expires.view().remainingSeconds())
            del self._incomingSockets[fd]
            oldest.close()
            _refusals.note("too many connections that say nothing")
        accept(self)

    def close_refused(self: Any, inc: Any, *args: Any, **options: Any) -> Any:
        if inc._rData.refused:
            inc.close()
            return None
        return added(self, inc, *args, **options)

    transport._acceptNewIncoming = accept_few
    transport._addedDataToIncoming = close_refused
    tcp.ReceiveBuffer = _buffer
    tcp.MAX_INCOMING_SOCKET_PERIOD = _STRANGER_PERIOD
    tcp.exclusive_processing = transports.exclusive_processing = _exclusive_processing


@contextlib.contextmanager
def _exclusive_processing(transport: Any) -> Iterator[None]:
    """As Thespian's, but let go also after an exception: else the next turn of the loop spins for ever."""
    while not transport._exclusively_processing():
        time.sleep(0.000001)
    try:
        yield
    finally:
        transport._not_processing()


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise moved(what)


def require_parameters(function: Any, names: str) -> None:
    """Raise `RuntimeError` unless this function of Thespian's takes exactly these parameters."""
    found = " ".join(inspect.signature(function).parameters)
    if found != names:
        raise moved(f"{function.__qualname__} takes ({found}), not ({names})")


def _check(address: Any, tcp: Any) -> None:
    """That what was replaced is what Thespian uses."""
    here = address.TCPv4ActorAddress(None, 1900, external=("192.0.2.1", 1900))
    _require(here.bindArgs == here.connectArgs == ((LOOPBACK, 1900),), "the addresses to bind and connect to")
    incoming = tcp.TCPIncomingPersistent(None, None)
    _require(isinstance(incoming._rData, SignedBuffer), "the buffer of an incoming connection")
    incoming.addData(tcp.toSendBuffer("check", tcp.serializer.dumps))
    _require(incoming.receivedAllData() and incoming.data == ("check", b""), "the form of a frame")
    sent = tcp.TCPTransport.serializer(_Sender(), _Sender())
    incoming = tcp.TCPIncomingPersistent(None, None)
    incoming.addData(sent)
    _require(incoming.data == (("sender", "sent"), b""), "the serializer of what is sent")


class _Sender:
    """Stands for a transport and for an intent in the check."""

    myAddress, message = "sender", "sent"  # noqa: N815
