"""Clients of pika: how they find a server, what their errors mean and what to do about them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from esault.connectors.shown_url import password_remedy, without_password
from esault.errors import EsaultError, TopologyError
from esault.tls_refused import tls_refused

__all__ = ["LONGEST", "address", "ask", "failure", "is_short", "library", "parameters", "passes"]

#: bytes of a short string of AMQP 0-9-1, such as a routing key or a header's name
LONGEST = 255

#: seconds within which a server must answer before anything starts
_ANSWER_WITHIN = 5.0

#: code with which a server closes a channel or a connection -> what to do
_REMEDIES = {
    403: "the user may not: give it the permission (rabbitmqctl set_permissions), or take another user",
    404: "make it, or correct its name and the virtual host in url",
    405: "another connection has it for itself (exclusive): end that one, or take another queue",
    406: "it is there with other properties: correct the options here, or delete it and have it made anew",
    530: "the user has no access to this virtual host: correct url, where /%2F is the one named /, or give it the permission "
    "(rabbitmqctl set_permissions)",
}


def library(who: str, kind: type[EsaultError]) -> Any:
    """Return the module pika. Raises `kind` where it is not installed."""
    try:
        import pika
        import pika.exceptions
    except ImportError:
        raise kind(f"{who} needs pika: pip install 'esault[rabbitmq]'") from None
    log = logging.getLogger("pika")
    if log.level == logging.NOTSET:
        log.setLevel(logging.CRITICAL)  # it tells of each attempt to connect; we say once, in our words
    return pika


def is_short(text: str) -> bool:
    """Return whether it fits into a short string."""
    return len(text) <= LONGEST and (text.isascii() or len(text.encode(errors="replace")) <= LONGEST)


def address(who: str, url: Any) -> str:
    """Return `url`. Raises TopologyError for what is none of AMQP."""
    if not isinstance(url, str) or not url.startswith(("amqp://", "amqps://")):
        raise TopologyError(
            f'{who}: url={without_password(url)}: write "amqp://user:password@host:5672/%2F", or amqps:// for TLS'
        )
    return url


def parameters(who: str, kind: type[EsaultError], url: str) -> Any:
    """Return how pika connects to `url`. Raises `kind`."""
    try:
        found = library(who, kind).URLParameters(url)
    except (ValueError, TypeError) as error:
        if remedy := password_remedy(url):
            raise kind(f"{who}: url={without_password(url)}: it has no host; {remedy}") from None
        raise kind(f"{who}: url: {error}; correct it") from None
    if found.client_properties is None:
        found.client_properties = {"connection_name": f"esault {who}"}
    return found


def place(asked: Any) -> str:
    """Return where these parameters lead to, without the password."""
    return f"{asked.host}:{asked.port}{'' if asked.virtual_host == '/' else '/' + asked.virtual_host}"


def passes(error: Any) -> bool:
    """Return whether it may be gone when one waits: the server is away, not asked for what it refuses."""
    import pika.exceptions as of

    if isinstance(error, (of.ProbableAuthenticationError, of.ProbableAccessDeniedError, of.AuthenticationError)):
        return False
    if isinstance(error, of.ConnectionClosedByBroker):
        return error.reply_code in (320, 541)  # it is shut down by its operator, or has failed
    if isinstance(error, of.ChannelClosedByBroker):
        return "down or inaccessible" in error.reply_text or error.reply_code in (311, 541)
    return isinstance(error, (of.AMQPConnectionError, OSError)) and _tls(error) is None


def failure(kind: type[EsaultError], who: str, asked: Any, error: Any) -> EsaultError:
    """Return the error for one of pika's, with the remedy; where it may pass by itself a ConnectionError is its cause."""
    import pika.exceptions as of

    where, code = place(asked), getattr(error, "reply_code", 0)
    if isinstance(error, (of.ProbableAuthenticationError, of.AuthenticationError)) or (
        code == 403 and isinstance(error, of.ConnectionClosed)
    ):
        return kind(f"{who}: {where} refuses user {asked.credentials.username!r}: correct user and password in url")
    if isinstance(error, of.ProbableAccessDeniedError):
        return kind(f"{who}: {where}: {_said(error)}; {_REMEDIES[530]}")
    if isinstance(error, (of.ConnectionClosedByBroker, of.ChannelClosedByBroker)):
        remedy = _REMEDIES.get(code)
        if "message size" in error.reply_text:  # the same code as for a queue with other properties
            remedy = "write smaller values, or raise max_message_size in the server's configuration"
        said = kind(f"{who}: {where}: {error.reply_text} ({code})" + (f"; {remedy}" if remedy else ""))
    elif (remedy := _tls(error)) is not None:
        said = kind(f"{who}: {where}: {_said(error)}; {remedy}")
    else:
        said = kind(f"{who}: {where} does not answer ({_said(error)}); see that RabbitMQ runs, and that url names it")
    if passes(error):
        said.__cause__ = ConnectionError(str(error))
    return said


def _tls(error: Any) -> str | None:
    return tls_refused(_said(error), "amqp://", "SSL_CERT_FILE in the environment")


def _said(error: Any) -> str:
    """The innermost of errors that hold others, in words."""
    while True:
        inner = next((each for each in getattr(error, "args", ()) if isinstance(each, BaseException)), None)
        inner = inner or getattr(error, "exception", None)
        if inner is None:
            return str(error) or type(error).__name__
        error = inner


def ask(who: str, kind: type[EsaultError], url: str, question: Callable[[Any], None]) -> None:
    """Have a channel of a connection of its own answer. Raises `kind` where the server is not there or refuses it."""
    pika = library(who, kind)
    asked = parameters(who, kind, url)
    asked.connection_attempts = 1
    asked.socket_timeout = asked.stack_timeout = asked.blocked_connection_timeout = _ANSWER_WITHIN
    try:
        connection = pika.BlockingConnection(asked)
        try:
            question(connection.channel())
        finally:
            if connection.is_open:
                connection.close()
    except (pika.exceptions.AMQPError, OSError) as error:
        said = failure(kind, who, asked, error)
        raise said from said.__cause__  # which says whether it may pass
