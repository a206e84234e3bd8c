"""Clients of confluent-kafka: how they are set, what their errors mean and what to do about them."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from esault.errors import EsaultError, TopologyError

__all__ = ["ENDED", "Watch", "check_topics", "failure", "libraries", "raise_failure", "settings"]

#: seconds within which a broker must answer before anything starts
ANSWER_WITHIN = 10
#: and where it refuses connections
REFUSED_WITHIN = 3

#: seconds for which clients that share a watch may still say what was so before one of them had an answer
_OLD = 1.0
#: seconds between two looks whether a broker that is away is back
_LOOK_EVERY = 2.0
#: what clients say on their own is left out: it comes as errors, in our words
_QUIET = {"log_level": 2}

_NOT_THERE = (
    'see that the broker runs, that bootstrap_servers names it as host:port, and that "security.protocol" in config is '
    "that of its listener"
)
#: name of a KafkaError -> what to do
_REMEDIES = {
    "_ALL_BROKERS_DOWN": _NOT_THERE,
    "_TRANSPORT": _NOT_THERE,
    "_TIMED_OUT": "see that the broker runs, and that its advertised.listeners can be reached from here",
    "_RESOLVE": "the host has no address: correct bootstrap_servers",
    "_AUTHENTICATION": 'correct "sasl.username" and "sasl.password" in config, and "security.protocol" and "sasl.mechanism"',
    "SASL_AUTHENTICATION_FAILED": 'correct "sasl.username" and "sasl.password" in config',
    "_SSL": 'see "security.protocol" and "ssl.ca.location" in config, and the name in the broker\'s certificate',
    "UNKNOWN_TOPIC_OR_PART": "make the topic (kafka-topics.sh --create), or correct its name",
    "_UNKNOWN_TOPIC": "make the topic (kafka-topics.sh --create), or correct its name",
    "_UNKNOWN_PARTITION": "the topic has fewer partitions: correct partition",
    "TOPIC_EXCEPTION": "a topic's name has letters, digits, '.', '_' and '-' only: correct it",
    "TOPIC_AUTHORIZATION_FAILED": "the broker's ACLs do not allow it: allow it, or take another user",
    "GROUP_AUTHORIZATION_FAILED": "the broker's ACLs do not allow this group: allow it, or take another group_id",
    "CLUSTER_AUTHORIZATION_FAILED": "the broker's ACLs do not allow it: allow IdempotentWrite and Describe",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "the broker's ACLs do not allow these transactional ids: allow the prefix esault-",
    "MSG_SIZE_TOO_LARGE": 'the message is too large: raise "message.max.bytes" here and max.message.bytes of the topic',
    "INVALID_TRANSACTION_TIMEOUT": "the broker allows less: lower transaction_timeout, or raise its transaction.max.timeout.ms",
    "_MSG_TIMED_OUT": "the broker was away for longer than message.timeout.ms; see that it runs",
    "OFFSET_OUT_OF_RANGE": "the topic has forgotten it (retention.ms, retention.bytes)",
    "NOT_ENOUGH_REPLICAS": "fewer replicas are in sync than the topic's min.insync.replicas asks for: mend the brokers",
}
#: a producer, or its transaction, has come to an end; these do not say why
ENDED = {"_FATAL", "_PURGE_QUEUE", "_PURGE_INFLIGHT", "_STATE"}
#: and these do. Another producer sends the rows again
_LOST = {
    *ENDED,
    *("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_ID_MAPPING", "UNKNOWN_PRODUCER_ID"),
    *("OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_TXN_STATE", "TRANSACTION_ABORTABLE"),
}
_ANEW = "the producer or its transaction is lost: what goes on from a checkpoint sends these rows again"
#: a partition has no leader for a moment: it has just been made, or moves to another broker
_LEADERLESS = {
    *("NOT_LEADER_FOR_PARTITION", "LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE"),
    *("FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"),
}
#: what is said of a partition that has just been found, beside that
UNSETTLED = {*_LEADERLESS, "UNKNOWN_TOPIC_OR_PART"}
#: may pass by itself: a restart is worth while
_PASSING = {
    *_LOST,
    *_LEADERLESS,
    *("_ALL_BROKERS_DOWN", "_TRANSPORT", "_TIMED_OUT", "_MSG_TIMED_OUT", "_TIMED_OUT_QUEUE", "REQUEST_TIMED_OUT"),
    *("NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND", "COORDINATOR_NOT_AVAILABLE"),
    *("NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "NETWORK_EXCEPTION", "BROKER_NOT_AVAILABLE", "_RESOLVE"),
}
#: no waiting mends these
_REFUSALS = {"_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "_SSL"}


def libraries(who: str, error: type[EsaultError]) -> Any:
    """Return the module confluent_kafka. Raises `error` where it is not installed."""
    try:
        import confluent_kafka
    except ImportError:
        raise error(f"{who} needs confluent-kafka: pip install 'esault[kafka]'") from None
    return confluent_kafka


def settings(who: str, bootstrap_servers: str, config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a client is set to. Raises TopologyError for what cannot be one's servers or settings."""
    if not isinstance(bootstrap_servers, str) or not bootstrap_servers:
        raise TopologyError(
            f'{who}: bootstrap_servers={bootstrap_servers!r}: write "host:port", or several with commas'
        )
    if config is not None and (not isinstance(config, Mapping) or not all(isinstance(name, str) for name in config)):
        raise TopologyError(
            f'{who}: config={config!r}: write a dict of librdkafka\'s settings, such as {{"linger.ms": 5}}'
        )
    return {**_QUIET, **(config or {}), "bootstrap.servers": bootstrap_servers}


def failure(kind: type[EsaultError], what: str, error: Any) -> EsaultError:
    """Return the error for a KafkaError, with the remedy; where it may pass by itself a ConnectionError is its cause."""
    name = error.name()
    remedy = _ANEW if name in _LOST else _REMEDIES.get(name)
    said = kind(f"{what}: {error.str()} ({name})" + (f"; {remedy}" if remedy else ""))
    if name in _PASSING or (error.retriable() and name not in _REFUSALS):
        said.__cause__ = ConnectionError(error.str())
    return said


def raise_failure(kind: type[EsaultError], what: str, error: Any) -> NoReturn:
    """Raise what `failure` makes, where another error is dealt with: its cause says whether it may pass, and `from None` would take that away."""
    said = failure(kind, what, error)
    raise said from said.__cause__


class Watch:
    """Hears the errors of a client that concern no single message: a refusal is kept, a broker that is away is said once."""

    def __init__(
        self, servers: str, say: Callable[[str], None] | None = None, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._servers, self._say, self._now = servers, say, now
        self._answered_at = -math.inf
        #: what no waiting mends
        self.refused: Any = None
        self.away = False
        self._ask_at = -math.inf

    def __call__(self, error: Any) -> None:
        """Called by the client, within its `poll`."""
        if error.name() in _REFUSALS:
            self.refused = error
        elif error.name() in ("_ALL_BROKERS_DOWN", "_RESOLVE") and not self.away and not self._is_old():
            self.away = True
            if self._say is not None:
                self._say(f"no broker of {self._servers} answers ({error.str()}): waiting until one does")

    def _is_old(self) -> bool:
        """Return whether what a client says now was so before another of them had an answer. A broker that stays away is told again."""
        return self._now() - self._answered_at < _OLD

    def look(self, question: Callable[[], object]) -> None:
        """Ask now and then whether a broker that is away is back, by a question of little time: where no message comes nothing tells."""
        now = self._now()
        if self.away and now >= self._ask_at:
            self._ask_at = now + _LOOK_EVERY
            with contextlib.suppress(Exception):  # it is still away
                question()
                self.answered()

    def answered(self) -> None:
        """A broker has answered."""
        self._answered_at = self._now()
        if self.away:
            self.away = False
            if self._say is not None:
                self._say(f"a broker of {self._servers} answers again")


def check_topics(
    who: str,
    kind: type[EsaultError],
    config: Mapping[str, Any],
    topics: list[str],
    create: int | None = None,
    besides: str = "",
) -> dict[str, int]:
    """Return the number of partitions of each topic that there is.

    `topics` must be there; `create`: makes one that is missing, with as many; `besides`: a remedy of the caller's own. Raises `kind`.
    """
    kafka = libraries(who, kind)
    from confluent_kafka.admin import AdminClient, NewTopic

    servers = config["bootstrap.servers"]
    watch = Watch(servers)
    try:
        admin = AdminClient({**config, "error_cb": watch})
    except kafka.KafkaException as error:
        raise kind(f"{who}: config: {error.args[0].str()}; correct it") from None
    known = None
    for seconds in range(1, ANSWER_WITHIN + 1):
        try:
            known = admin.list_topics(timeout=1).topics
            break
        except kafka.KafkaException as error:
            admin.poll(0)
            if watch.refused or (watch.away and seconds >= REFUSED_WITHIN) or seconds == ANSWER_WITHIN:
                raise_failure(kind, f"{who}: {servers} does not answer", watch.refused or error.args[0])
    assert known is not None
    missing = [name for name in topics if name not in known]
    if missing and create is not None:
        for made in admin.create_topics([NewTopic(name, create) for name in missing]).values():
            try:
                made.result(ANSWER_WITHIN)
            except kafka.KafkaException as error:
                if error.args[0].name() != "TOPIC_ALREADY_EXISTS":  # another was first
                    raise_failure(kind, f"{who}: the topic cannot be made", error.args[0])
    elif missing:
        near = [name for name in sorted(known) if not name.startswith("__")][:10]
        raise kind(
            f"{who}: there is no topic {missing[0]!r} at {servers} (there are: {', '.join(near) or 'none'}); make it "
            f"(kafka-topics.sh --create), allow this user to describe it, or correct its name{besides}"
        )
    for name in topics:
        if name in known and known[name].error is not None:
            raise failure(kind, f"{who}: topic {name!r}", known[name].error)
    made_now = dict.fromkeys(missing, create or 0)
    return {**{name: len(topic.partitions) for name, topic in known.items()}, **made_now}
