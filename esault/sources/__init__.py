"""Sources in the box: ordinary spouts. Their constructors open nothing; `check` says clearly what cannot be read.

    TextFiles(path)             lines of files, folders and globs, `.gz` too; can follow files that grow
    JsonFiles(path, key="id")   objects of JSON lines files
    Lines()                     lines of standard input
    Directory(path)             lines of the files of a folder that gets files, in splits
    KafkaSource("topic")        messages of topics of Kafka, each partition a split
    TcpLines(host, port)        lines over TCP, from a server or (listen=True) from clients
    Items(rows)                 (key, value) pairs of a list, or of what a function returns
    Paced(spout, rate=1000)     another spout's tuples at a set rate, open loop
    MicroBatches(spout)         another spout's tuples in windows, for policies with pipelines

TextFiles, JsonFiles, Items, and Paced and MicroBatches around them, know their position: they go on after a restart and
can be read by several readers. What came over standard input or TCP cannot be read again.
"""

from __future__ import annotations

from esault.sources.directory import Directory
from esault.sources.items import Items
from esault.sources.json_files import JsonFiles
from esault.sources.kafka_source import KafkaSource
from esault.sources.lines import Lines
from esault.sources.micro_batches import MicroBatches
from esault.sources.paced import Paced
from esault.sources.tcp_lines import TcpLines
from esault.sources.text_files import TextFiles

__all__ = [
    "Directory",
    "Items",
    "JsonFiles",
    "KafkaSource",
    "Lines",
    "MicroBatches",
    "Paced",
    "TcpLines",
    "TextFiles",
]
