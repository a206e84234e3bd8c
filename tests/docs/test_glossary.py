"""The glossary and the code use the same words: its names exist, and private nouns of old stay out."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FILES = sorted([*(ROOT / "esault").rglob("*.py"), *(ROOT / "topologies").rglob("*.py")])
UNDER_WORK: tuple[str, ...] = ()
PRIVATE = frozenset(
    [
        "porter",
        "door",
        "doors",
        "envoy",
        "envoys",
        "lodge",
        "lodges",
        "lodging",
        "lodgings",
        "lodger",
        "dwelling",
        "dwellings",
        "wish",
        "wishes",
        "wished",
        "chronicle",
        "vault",
        "vaults",
        "seat",
        "seats",
        "seated",
        "twin",
        "twins",
        "silences",
        "giver",
        "givers",
        "getter",
        "getters",
        "tender",
        "tenders",
        "lane",
        "lanes",
    ]
)
#: which process, sender or reader is meant?
PRONOUNS = frozenset(["nobody", "somebody", "anybody", "everybody", "someone", "anyone", "whoever", "whomever"])
QUESTIONS = re.compile(r"(What|Who|Whose|Whom|Whether|How|Where|When|Which|Why|Whatever|Whoever|Nobody|Somebody)\b")


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def files(but: tuple[str, ...]) -> list[Path]:
    return [path for path in FILES if not name(path).startswith(but)]


def parts(identifier: str) -> list[str]:
    """`HostAgent_x2` as host, agent, x."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", identifier)]


def letters(words: list[str]) -> set[str]:
    """Those of `letter` that are not dead ones."""
    return {
        word for i, word in enumerate(words) if word in ("letter", "letters") and (i == 0 or words[i - 1] != "dead")
    }


def prose(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


@pytest.mark.parametrize("path", files(UNDER_WORK), ids=name)
def test_no_private_noun_stands_in_the_code(path):
    found: list[str] = []
    before: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(path.read_text()).readline):
        words: set[str] = set()
        if token.type == tokenize.NAME:
            words = PRIVATE & set(parts(token.string)) | letters(parts(token.string))
        elif token.type == tokenize.COMMENT:
            words = (PRIVATE | PRONOUNS) & set(prose(token.string)) | letters(prose(token.string))
        elif token.type == tokenize.STRING or token.type == getattr(tokenize, "FSTRING_MIDDLE", -1):
            words = (PRIVATE | PRONOUNS) & set(prose(token.string))
            if before is None or before.type in (tokenize.INDENT, tokenize.NEWLINE):
                words |= letters(prose(token.string))
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            before = token
        found += [f"{name(path)}:{token.start[0]}: {word}" for word in sorted(words)]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_no_private_noun_stands_in_the_docs(path):
    words = prose(re.sub(r"`test_\w+", "", path.read_text()))
    assert not (PRIVATE | PRONOUNS) & set(words) | letters(words)


def terms() -> list[tuple[str, str]]:
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in (ROOT / "docs" / "reference" / "glossary.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| word |")
    ]
    assert all(len(row) == 3 for row in rows)
    return [(row[0], row[2]) for row in rows]


def test_a_term_has_one_meaning():
    words = [word.strip() for term, _ in terms() for word in re.sub(r"\(Spark\)", "", term).split(",")]
    twice = {word for word in words if words.count(word) > 1}
    assert twice <= {"level"}, "a level of the Spark engine says so"


def test_names_of_the_glossary_are_those_of_the_code():
    classes = {
        node.name for path in FILES for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ClassDef)
    }
    for term, code in terms():
        if not code:
            continue
        assert re.fullmatch(r"`[\w.]+`", code), (term, code)
        if "." in code:
            assert importlib.util.find_spec(code.strip("`")) is not None, (term, code)
        else:
            assert code.strip("`") in classes, (term, code)


@pytest.mark.parametrize("path", files(UNDER_WORK), ids=name)
def test_docstrings_begin_with_a_noun_or_a_verb(path):
    """ "Return ...", "A channel ...": a question word says neither what it is nor what it does."""
    found = [
        f"{name(path)}:{node.body[0].lineno}: {text.splitlines()[0]}"
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node)) is not None
        and QUESTIONS.match(text)
    ]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=name)
def test_lines_of_the_docs_are_at_most_120_characters_long(path):
    """Tables, code and lines that are one link excepted."""
    fence = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        fence ^= line.lstrip().startswith("```")
        if not fence and not line.startswith("|") and not re.fullmatch(r"\s*[-*]?\s*!?\[[^\]]*\]\([^)]*\)\S*", line):
            assert len(line) <= 120, f"{name(path)}:{number}: {line}"
