"""How many cases of each peer agree, differ or cannot be said: the table in README.md is what stands in the tests and below it."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
README = HERE / "README.md"
PEERS = ("Flink", "Kafka Streams", "Bytewax", "Spark", "Storm", "Beam")
#: how a peer names its tests
NAMES = {"Bytewax": r"\btest_[a-z]\w*\b(?!\.py)", "Spark": r"\"([^\"]+)\"", "Beam": r"\"([^\"]+)\""}
JAVA = r"\b(?:test[A-Z]|should[A-Z]|[a-z]\w*Should[A-Z])\w*"


def texts(source):
    """(line, text) of comments, docstrings and names of tests that cases stand under."""
    found = []
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            found.append((token.start[0], token.string))
    docstrings = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.Module)) and (said := ast.get_docstring(node)):
            docstrings.add(node.body[0].lineno)
            found.append((node.body[0].lineno, said))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in docstrings:
            found += [(node.lineno, node.value)] * bool(re.fullmatch(JAVA, node.value))
    return sorted(found)


def agreeing():
    """peer -> how many of its tests stand in tests here."""
    found: Counter[str] = Counter()
    for path in sorted(HERE.glob("test_*.py")):
        if path.name == "test_counts.py":
            continue
        said = texts(path.read_text())
        (_, about) = said[0]
        peer = next((peer for peer in PEERS if peer in about), "")
        for _, text in said[1:]:
            section = re.match(rf"# ({'|'.join(PEERS)}): ", text)
            alone = re.match(rf"({'|'.join(PEERS)})\b[^,]*, ", text)
            if section:
                peer = section[1]
            elif alone:  # one that says itself of which peer it is
                found[alone[1]] += max(1, len(set(re.findall(NAMES.get(alone[1], JAVA), text))))
            else:
                found[peer] += len(set(re.findall(NAMES.get(peer, JAVA), text)))
    return found


def rows(title):
    """The cells of the table under this title, without its head."""
    part = README.read_text().partition(f"{title}\n")[2].partition("\n#")[0]
    cells = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")
    ]
    return cells[2:]


def listed(title):
    """peer -> how many tests stand in that table, by their names or as "(15 tests)" of a file."""
    found: Counter[str] = Counter()
    for peer, tests, why in rows(title):
        assert peer in PEERS and why
        found[peer] += sum(map(int, re.findall(r"\((\d+) tests\)", tests)))
        found[peer] += sum(
            not re.fullmatch(r"\w+(Test|Suite|ITCase)|test_\w+\.py", name) for name in re.findall(r"`([^`]+)`", tests)
        )
    return found


def test_the_table_counts_what_is_there():
    agree, differ, unsaid = agreeing(), listed("## Differ by design"), listed("## Cannot be said")
    assert not agree[""], "a test stands in no peer's section"
    peers = [peer for peer in PEERS if agree[peer] + differ[peer] + unsaid[peer]]
    want = [[peer, str(agree[peer]), str(differ[peer]), str(unsaid[peer])] for peer in peers]
    assert rows("# Cases of peers") == want, "the table is to be\n" + "\n".join(
        f"| {' | '.join(row)} |" for row in want
    )
