"""A real Kafka broker for tests: one process of Java, in KRaft mode, on ports of its own and on a folder that ends with it.

Its jars come from Maven Central by `mvn`, once for a machine, into the user's cache.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import maven
from ports import free_port

VERSION = "4.4.0"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "esault" / f"kafka-{VERSION}"
#: whether another run of the tests finds what this one writes there. To write the classes takes ten processor seconds, and a broker
#: that has them starts three sooner: CI, with a new machine for each run, would never have them back
_KEPT = not os.environ.get("CI")
#: user and password that its second listener asks for
USER, PASSWORD = "alice", "wonder"

_POM = f"""<project><modelVersion>4.0.0</modelVersion>
<groupId>esault</groupId><artifactId>kafka-for-tests</artifactId><version>1</version><dependencies>
<dependency><groupId>org.apache.kafka</groupId><artifactId>kafka_2.13</artifactId><version>{VERSION}</version></dependency>
<dependency><groupId>org.apache.logging.log4j</groupId><artifactId>log4j-slf4j-impl</artifactId><version>2.24.3</version></dependency>
</dependencies></project>
"""

_JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="{USER}" password="{PASSWORD}" user_{USER}="{PASSWORD}";'
)


class NotToBeHadError(Exception):
    """What a broker needs is not on this machine, and cannot be installed by a test."""


def jars() -> Path:
    """Return the folder of Kafka's jars. Raises NotToBeHadError."""
    if not shutil.which("java"):
        raise NotToBeHadError("there is no java: apt-get install maven brings one")
    if _CACHE.is_dir():
        return _CACHE
    if not shutil.which("mvn"):
        raise NotToBeHadError("Kafka's jars come by mvn: apt-get install maven")
    with maven.fetched_once(_CACHE) as made:
        try:
            maven.copy_jars(_POM, made)
        except subprocess.SubprocessError as error:
            said = getattr(error, "stdout", None) or error
            raise NotToBeHadError(f"mvn does not bring Kafka's jars: {str(said)[-500:]}") from None
    return _CACHE


def own_properties(port: int, guarded: int, tls: int, controller: int) -> dict[str, str]:
    """Return what a broker of tests is told, at these ports."""
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded},SSL://127.0.0.1:{tls},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": f"PLAINTEXT://127.0.0.1:{port},SASL_PLAINTEXT://127.0.0.1:{guarded},SSL://127.0.0.1:{tls}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL",
        "ssl.keystore.type": "PEM",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": _JAAS,
        "offsets.topic.replication.factor": "1",
        "offsets.topic.num.partitions": "4",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
        "transaction.state.log.num.partitions": "4",
        "share.coordinator.state.topic.replication.factor": "1",
        "share.coordinator.state.topic.min.isr": "1",
        "group.initial.rebalance.delay.ms": "0",
        "auto.create.topics.enable": "false",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "200",
    }


def properties_of(environment: Mapping[str, object]) -> dict[str, str]:
    """Return what the image apache/kafka makes of its environment: KAFKA_NODE_ID is node.id."""
    names = {name: name.removeprefix("KAFKA_").lower().replace("_", ".") for name in environment}
    return {names[name]: str(value) for name, value in environment.items() if name.startswith("KAFKA_")}


class Broker:
    """One broker. `servers` is where it listens, `guarded` where it asks for a password, `tls` where it speaks TLS.

    Everybody may do all that no ACL says anything about, and who comes to `servers` all.
    """

    def __init__(
        self, folder: Path, properties: Callable[[int, int], dict[str, str]] | None = None, **settings: str
    ) -> None:
        """`properties`: those of its file in place of its own, from its port and that of the controller."""
        self.folder = folder
        port, guarded, tls, controller = (free_port() for _ in range(4))
        self.port = port
        self.servers, self.guarded, self.tls = (f"127.0.0.1:{each}" for each in (port, guarded, tls))
        self.certificate = folder / "certificate.pem"
        self._process: subprocess.Popen[bytes] | None = None
        self._classes = f"{jars()}/*"
        #: classes as this Java has read and checked them: a broker starts in two thirds of its processor time
        self._archive = _CACHE.with_name(f"{_CACHE.name}-{Path(shutil.which('java') or '').resolve().parts[-3]}.jsa")
        self._new_archive = folder / "classes.jsa"
        if properties is not None:
            lines = properties(port, controller)
        else:
            lines = {**own_properties(port, guarded, tls, controller), "ssl.keystore.location": str(self._keys())}
        lines = {
            **lines,
            "log.dirs": str(folder / "data"),
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
        self._properties = folder / "server.properties"
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in lines.items()))
        self._format(properties is None and not settings)

    def _format(self, usual: bool) -> None:
        """Have a folder for its data. That of a usual one is made once for a machine: a Java less for each broker."""
        formatted, data = _CACHE.with_name(f"{_CACHE.name}-formatted"), self.folder / "data"
        if usual and formatted.is_dir():
            shutil.copytree(formatted, data)
            return
        self._java("kafka.tools.StorageTool", "format", "-t", _cluster_id(), "-c", str(self._properties))
        if usual:  # another process may be first
            with tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder, contextlib.suppress(OSError):
                shutil.copytree(data, Path(folder, "data")).rename(formatted)

    def _keys(self) -> Path:
        """Make the certificate that it shows, which is its own authority, and return the file with its key."""
        key, both = self.folder / "key.pem", self.folder / "keystore.pem"
        asked = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
        asked += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(self.certificate)]
        subprocess.run(asked, check=True, capture_output=True, timeout=60)
        both.write_text(key.read_text() + self.certificate.read_text())
        return both

    def allow_only(self, kind: str, name: str, operation: str) -> None:
        """Allow an operation ("DESCRIBE") on a resource of a kind ("TOPIC") to `USER`, and nothing else to who is not at `servers`."""
        from confluent_kafka.admin import (
            AclBinding,
            AclOperation,
            AclPermissionType,
            AdminClient,
            ResourcePatternType,
            ResourceType,
        )

        pattern = ResourcePatternType.PREFIXED if kind == "TRANSACTIONAL_ID" else ResourcePatternType.LITERAL
        how = (f"User:{USER}", "*", AclOperation[operation], AclPermissionType.ALLOW)
        acl = AclBinding(ResourceType[kind], name, pattern, *how)
        admin = AdminClient({"bootstrap.servers": self.servers})
        for made in admin.create_acls([acl]).values():
            made.result(30)

    def _command(self, main: str, *arguments: str) -> list[str]:
        quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx512m", "-Xshare:auto"]
        if self._archive.exists():
            quick.append(f"-XX:SharedArchiveFile={self._archive}")
        elif main == "kafka.Kafka" and _KEPT:
            quick.append(f"-XX:ArchiveClassesAtExit={self._new_archive}")
        return ["java", *quick, f"-Dkafka.logs.dir={self.folder}", "-cp", self._classes, main, *arguments]

    def keep_classes(self) -> None:
        """End it so that Java writes down the classes it has loaded, if this is the first broker on this machine."""
        if self._process is None or self._archive.exists() or not _KEPT:
            return
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(60)
        with contextlib.suppress(OSError), tempfile.TemporaryDirectory(dir=_CACHE.parent) as folder:
            shutil.copy(self._new_archive, Path(folder, "classes")).rename(self._archive)

    def _java(self, main: str, *arguments: str) -> None:
        done = subprocess.run(self._command(main, *arguments), capture_output=True, text=True, timeout=120)
        assert not done.returncode, done.stdout + done.stderr

    def start(self) -> None:
        """Start it, and wait until it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            asked = self._command("kafka.Kafka", str(self._properties))
            self._process = subprocess.Popen(asked, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0}, logger=_quiet())
        for _ in range(240):
            assert self._process.poll() is None, (self.folder / "broker.log").read_text()[-3000:]
            with contextlib.suppress(KafkaException):
                if admin.list_topics(timeout=0.5).brokers:
                    return
            time.sleep(0.05)
        raise AssertionError("the broker does not answer: " + (self.folder / "broker.log").read_text()[-3000:])

    def stop(self, with_signal: int = signal.SIGKILL) -> None:
        """End its process, by its id."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait()
            self._process = None

    def freeze(self, seconds: float) -> None:
        """Let it stand still for so long."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        time.sleep(seconds)
        self._process.send_signal(signal.SIGCONT)

    def topic(self, partitions: int = 1, name: str = "", **settings: str) -> str:
        """Make a topic, and return its name."""
        from confluent_kafka.admin import AdminClient, NewTopic

        name = name or f"t-{uuid.uuid4().hex[:12]}"
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = AdminClient({"bootstrap.servers": self.servers})
        made = admin.create_topics([NewTopic(name, partitions, 1, config=config)])
        made[name].result(30)
        return name

    def messages(self, topic: str, committed: bool = True) -> list[object]:
        """Return the messages of a topic by partition and offset; `committed`: none of transactions that are open or aborted."""
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed else "read_uncommitted",
                "fetch.wait.max.ms": 20,
            }
        )
        try:
            if committed:
                self._wait_for_ends()
            partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
            consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
            found, ended = [], set()
            while len(ended) < len(partitions):
                for message in consumer.consume(1000, 0.05):
                    if message.error() is None:
                        found.append(message)
                    elif message.error().code() == KafkaError._PARTITION_EOF:
                        ended.add(message.partition())
                    else:
                        raise AssertionError(message.error())
        finally:
            consumer.close()
        return sorted(found, key=lambda message: (message.partition(), message.offset()))

    def _wait_for_ends(self) -> None:
        """A commit is decided before all partitions have its marker."""
        from kafka import KafkaAdminClient

        client = KafkaAdminClient(bootstrap_servers=self.servers)
        while any(client.list_transactions(state_filters=["PrepareCommit", "PrepareAbort"]).values()):
            time.sleep(0.005)
        client.close()

    def open_transactions(self) -> list[str]:
        """Return the ids of transactions that are open."""
        from kafka import KafkaAdminClient

        client = KafkaAdminClient(bootstrap_servers=self.servers)
        try:
            found = client.list_transactions(state_filters=["Ongoing"])
        finally:
            client.close()
        return [each.transactional_id for of_broker in found.values() for each in of_broker]


def _cluster_id() -> str:
    import base64

    return (
        base64.b64encode(uuid.uuid4().bytes, altchars=b"AB").decode().rstrip("=")
    )  # one that begins with "-" is no argument


def _quiet():
    import logging

    logger = logging.getLogger("tests.kafka")
    logger.addHandler(logging.NullHandler())
    logger.propagate = False
    return logger


@contextlib.contextmanager
def running(**settings: str) -> Iterator[Broker]:
    """A broker in a folder of its own. Raises NotToBeHadError."""
    with tempfile.TemporaryDirectory(prefix="kafka-", ignore_cleanup_errors=True) as folder:
        broker = Broker(Path(folder), **settings)
        try:
            broker.start()
            yield broker
            broker.keep_classes()
        finally:
            broker.stop()
