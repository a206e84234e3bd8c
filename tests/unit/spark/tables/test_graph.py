"""The picture of a pipeline's tables."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from esault.spark.tables.graph import Node, _places, drawn, mermaid

NAMES = ["a", "b_2", "ü", "x & <y>", "e"]


@st.composite
def graphs(draw):
    made = []
    for number, name in enumerate(NAMES[: draw(st.integers(0, 5))]):
        reads = tuple(draw(st.lists(st.sampled_from(NAMES[:number]), unique=True, max_size=3))) if number else ()
        stream = tuple(each for each in reads if draw(st.booleans()))
        made.append(Node(name, draw(st.sampled_from(["landed", "table", "materialized_view"])), reads, stream))
    return made


@given(graphs())
def test_each_stands_behind_all_that_it_reads_and_on_no_other(graph):
    places = _places(graph)
    assert len(set(places.values())) == len(graph)
    assert all(places[read][0] < places[node.name][0] for node in graph for read in node.reads)


@given(graphs())
def test_the_picture_is_whole_and_names_all(graph):
    tree = ET.fromstring(drawn(graph))
    texts = [each.text for each in tree.iter() if each.tag.endswith("text")]
    assert [text for text in texts if text in NAMES] == [node.name for node in graph]
    paths = [each for each in tree.iter() if each.tag.endswith("path")]
    assert len(paths) == sum(len(node.reads) for node in graph)
    whole = sum(len(set(node.reads) - set(node.stream)) for node in graph)
    assert sum("stroke-dasharray" in each.attrib for each in paths) == whole
    for each in tree.iter():
        if each.tag.endswith("rect"):
            assert float(each.attrib["x"]) + float(each.attrib["width"]) <= float(tree.attrib["width"])
            assert float(each.attrib["y"]) + float(each.attrib["height"]) <= float(tree.attrib["height"])


@given(graphs())
def test_mermaid_has_an_arrow_for_each_that_is_read(graph):
    lines = mermaid(graph).splitlines()
    assert lines[0] == "flowchart LR" and len(lines) == 1 + len(graph) + sum(len(node.reads) for node in graph)
    assert sum(" --> " in line for line in lines) == sum(len(node.stream) for node in graph)
