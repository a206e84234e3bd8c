"""Clients of paho: how they connect by MQTT 5, what is refused, and what is waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from esault.connectors.mqtt.texts import read_as_the_standard_says
from esault.connectors.shown_url import without_password
from esault.errors import EsaultError, TopologyError

__all__ = ["Server", "Session", "address", "ask", "library"]

#: host, port, user, password, whether by TLS
Server = tuple[str, int, "str | None", "str | None", bool]

#: seconds within which a broker must answer before anything starts
_ANSWER_WITHIN = 5.0
#: and have taken what was sent before the end
_TAKEN_WITHIN = 2.0
#: connections in a row that may end since something came that cannot be read: the broker gives it again
_MOST_UNREADABLE = 5


def library(who: str, kind: type[EsaultError]) -> Any:
    """Return the module paho.mqtt.client. Raises `kind` where it is not installed."""
    try:
        import paho.mqtt.client
    except ImportError:
        raise kind(f"{who} needs paho-mqtt: pip install 'esault[mqtt]'") from None
    return paho.mqtt.client


class Session:
    """One client in a thread of its own. Callbacks come in that thread; `say` takes lines: a broker that is away is said once."""

    def __init__(
        self,
        who: str,
        kind: type[EsaultError],
        server: Server,
        say: Callable[[str], None],
        client_id: str,
        *,
        expiry: int = 0,
        receive: int = 1000,
        connected: Callable[[Any], None],
        lost: Callable[[], None] = lambda: None,
        failed: Callable[[EsaultError], None],
    ) -> None:
        """`server`: host, port, user, password, TLS. `expiry`: seconds for which the broker keeps the session; 0: a new one."""
        paho = library(who, kind)
        read_as_the_standard_says()
        from paho.mqtt.packettypes import PacketTypes
        from paho.mqtt.properties import Properties

        self._who, self._kind, self._say, self._server, self._name = who, kind, say, server, client_id
        self._connected, self._lost, self._failed = connected, lost, failed
        self._away = self._over = False
        self._unreadable = 0
        #: bytes of a packet that the broker takes at most; None: it does not say
        self.most_bytes: int | None = None
        host, port, user, password, tls = server
        self.client = client = paho.Client(
            paho.CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, manual_ack=True
        )
        if user is not None:
            client.username_pw_set(user, password)
        if tls:
            client.tls_set()
        client.reconnect_delay_set(1, 2)
        client.on_connect, client.on_disconnect, client.on_connect_fail = self._on_connect, self._gone, self._no_answer
        properties = Properties(PacketTypes.CONNECT)
        properties.SessionExpiryInterval, properties.ReceiveMaximum = expiry, receive
        client.connect_timeout = _ANSWER_WITHIN
        client.connect_async(host, port, clean_start=not expiry, properties=properties)

    def start(self) -> None:
        self.client.loop_start()

    @property
    def _where(self) -> str:
        return f"{self._server[0]}:{self._server[1]}"

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            if reason.value in (0x84, 0x85, 0x86, 0x87, 0x8A, 0x8C):
                self._over = True
                self._failed(
                    self._kind(
                        f"{self._who}: {self._where} refuses user {self._server[2]!r} ({reason}): correct user and password, or the "
                        "broker's rules"
                    )
                )
                client.disconnect()
            return
        self.most_bytes = getattr(properties, "MaximumPacketSize", None)
        if self._away:
            self._away = False
            self._say(f"the broker at {self._where} answers again")
        self._connected(client)

    def _gone(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        self._lost()
        ours = str(reason) == "Protocol error" and not flags.is_disconnect_packet_from_server
        self._unreadable = self._unreadable + 1 if ours else 0
        if self._unreadable < _MOST_UNREADABLE:
            self._wait(str(reason))
        elif not self._over:
            self._over = True
            self._failed(
                self._kind(
                    f"{self._who}: {self._where} gives what cannot be read, {self._unreadable} times in a row: a message that MQTT 5 does not "
                    f"allow? Take it with another client (mosquitto_sub -c -i {self._name}), or read with another client_id"
                )
            )
            client.disconnect()

    def _no_answer(self, client: Any, userdata: Any) -> None:
        self._wait("no connection")

    def _wait(self, why: str) -> None:
        if not self._away and not self._over:
            self._away = True
            self._say(f"the broker at {self._where} does not answer ({why}): waiting until it does")

    def close(self) -> None:
        """Disconnect; the broker keeps the session for its expiry."""
        self._over = True
        if self.client.is_connected():
            # The broker answers in order: behind this all acknowledgements have come. What a closed connection brought may be left unread.
            answered = threading.Event()
            self.client.on_unsubscribe = lambda *_: answered.set()
            self.client.unsubscribe("esault/nothing")
            answered.wait(_TAKEN_WITHIN)
        self.client.disconnect()
        self.client.loop_stop()


def address(who: str, host: Any, port: Any, user: Any, password: Any, tls: Any) -> Server:
    """Return where a broker is. Raises TopologyError."""
    if not isinstance(host, str) or not host:
        raise TopologyError(f"{who}: host={host!r}: write the broker's name or address")
    if "/" in host or host.count(":") == 1:  # more of them: an address of IPv6
        raise TopologyError(
            f'{who}: host={without_password(host)}: write the broker\'s name or address alone, such as host="localhost", port=1883; for '
            "TLS tls=True"
        )
    if type(port) is not int or not 0 < port < 65536:
        raise TopologyError(f"{who}: port={port!r}: write a number such as 1883, or 8883 for TLS")
    return host, port, user, password, bool(tls)


def ask(who: str, kind: type[EsaultError], server: Server) -> None:
    """Connect once. Raises `kind` where no broker answers, or it refuses the user."""
    answered, errors = threading.Event(), []

    def failed(error: EsaultError) -> None:
        errors.append(error)
        answered.set()

    def away(line: str) -> None:
        failed(
            kind(
                f"{who}: {server[0]}:{server[1]} does not answer; see that a broker runs there, and correct host and port; {_by_tls(server)}"
            )
        )

    session = Session(who, kind, server, away, "", connected=lambda client: answered.set(), failed=failed)
    session.start()
    fine = answered.wait(_ANSWER_WITHIN)
    session.close()
    if errors:
        raise errors[0]
    if not fine:
        raise kind(
            f"{who}: {server[0]}:{server[1]} does not answer within {_ANSWER_WITHIN:.0f} s; see that it is a broker of MQTT 5; {_by_tls(server)}"
        )


def _by_tls(server: Server) -> str:
    """Return what may be wrong with TLS; paho does not tell."""
    if server[4]:
        return "does it speak TLS there, with a certificate that is trusted here? SSL_CERT_FILE names another authority"
    return "if it speaks TLS there write tls=True"
