"""The glossary and the code use the same words: its names exist, and private nouns of old stay out."""

from __future__ import annotations

import ast
import importlib.util
import io
import re
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")])
FILES = sorted(path for room in ("esault", "topologies", "bench") for path in (ROOT / room).rglob("*.py"))
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
LETTERS = frozenset(["letter", "letters"])
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
    return {word for i, word in enumerate(words) if word in LETTERS and (i == 0 or words[i - 1] != "dead")}


def prose(text: str) -> list[str]:
    return re.findall(r"[a-z]+", text.lower())


def stand_in(path: Path) -> list[str]:
    """Private nouns and pronouns in a file of code, with their lines."""
    text, found = path.read_text(), []
    # Few files have any of the words at all, and only those are read token by token.
    if not (PRIVATE | PRONOUNS | LETTERS) & {*parts(text), *prose(text)}:
        return []
    before: tokenize.TokenInfo | None = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
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
    return found


def test_no_private_noun_stands_in_the_code():
    assert not [found for path in files(UNDER_WORK) for found in stand_in(path)]


def test_private_nouns_are_found_in_names_comments_and_texts(tmp_path):
    path = ROOT / "esault" / "no_such_file.py"

    class Read(type(path)):
        def read_text(self, *_):
            return '"""Somebody asks."""\nOldPorter = "default"  # of a lane\nletter_box = dead_letter = 1\n'

    assert [each.rpartition(":")[2].strip() for each in stand_in(Read(path))] == [
        "somebody",
        "porter",
        "lane",
        "letter",
    ]


def test_no_private_noun_stands_in_the_docs():
    found: dict[str, set[str]] = {}
    for path in PAGES:
        words = prose(re.sub(r"`test_\w+", "", path.read_text()))
        found[name(path)] = (PRIVATE | PRONOUNS) & set(words) | letters(words)
    assert not {page: words for page, words in found.items() if words}


def rows(text: str) -> list[list[str]]:
    """Cells of tables, without their heads."""
    lines = [
        line for line in text.splitlines() if line.startswith("| ") and not line.startswith(("| word |", "| here |"))
    ]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]


WORDS, _, ELSEWHERE = (ROOT / "docs" / "reference" / "glossary.md").read_text().partition("## The words of others")


def terms() -> list[tuple[str, str]]:
    assert all(len(row) == 3 for row in rows(WORDS))
    return [(row[0], row[2]) for row in rows(WORDS)]


def test_words_of_others_are_told_of_words_that_there_are():
    words = {word.strip() for term, _ in terms() for word in term.split(",")}
    assert {word.strip() for row in rows(ELSEWHERE) for word in row[0].split(",")} <= words
    assert all(len(row) == 4 and any(cell != "-" for cell in row[1:]) for row in rows(ELSEWHERE))


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


def test_docstrings_begin_with_a_noun_or_a_verb():
    """ "Return ...", "A channel ...": a question word says neither what it is nor what it does."""
    found = [
        f"{name(path)}:{node.body[0].lineno}: {text.splitlines()[0]}"
        for path in files(UNDER_WORK)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and (text := ast.get_docstring(node)) is not None
        and QUESTIONS.match(text)
    ]
    assert not found


def test_lines_of_the_docs_are_at_most_120_characters_long():
    """Tables, code and lines that are one link excepted."""
    long = []
    for path in PAGES:
        fence = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            fence ^= line.lstrip().startswith("```")
            link = re.fullmatch(r"\s*[-*]?\s*!?\[[^\]]*\]\([^)]*\)\S*", line)
            if len(line) > 120 and not fence and not line.startswith("|") and not link:
                long.append(f"{name(path)}:{number}: {line}")
    assert not long
