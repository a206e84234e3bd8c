"""The pages of docs/ as a site: what GitHub understands and MkDocs does not, mended page by page.

The pages are written to be read in a checkout. Here links that leave docs/ lead to copies, diagrams are drawn, lists are indented as
Python-Markdown wants them, and the navigation follows from docs/README.md.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"(\]\()([^)\s#]+)(#[^)\s]*)?(\))")
MERMAID = re.compile(r"^```mermaid\n(.*?)^```$", re.M | re.S)
SECTION = re.compile(r"^\*\*(.+?)\*\*", re.M)
ITEM = re.compile(r"^( *)([-*]|\d+\.) ")
PICTURES = (".png", ".svg")
LANGUAGES = {".py": "python", ".json": "json", ".yml": "yaml", ".toml": "toml", ".sh": "sh"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Make the navigation of what docs/README.md lists, in its sections and order."""
    text = (DOCS / "README.md").read_text()
    parts = SECTION.split(text)
    nav: list[object] = ["README.md"]
    for title, body in zip(parts[1::2], parts[2::2]):
        pages = [target for _, target, _, _ in LINK.findall(body) if target.endswith(".md")]
        nav.append({title: list(dict.fromkeys(pages))})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to and is not in docs/, and the pictures of their diagrams."""
    waiting = [DOCS / file.src_uri for file in files.documentation_pages()]
    done: set[Path] = set()
    while waiting:
        page = waiting.pop()
        text = page.read_text()
        if not page.is_relative_to(DOCS):
            text = _relinked(text, page, _place(page))
        for source in MERMAID.findall(text):
            files.append(File.generated(config, _diagram(source), content=_drawn(source, page)))
        for target in _outside(page):
            if target in done:
                continue
            done.add(target)
            if target.suffix in PICTURES:
                files.append(File.generated(config, _place(target), abs_src_path=str(target)))
            elif target.suffix == ".md":
                waiting.append(target)
                files.append(
                    File.generated(
                        config, _place(target), content=_relinked(target.read_text(), target, _place(target))
                    )
                )
            else:
                files.append(File.generated(config, _place(target), content=_shown(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Return the page as MkDocs wants it."""
    place = page.file.src_uri
    if not place.startswith("source/"):
        markdown = _relinked(markdown, DOCS / place, place)
    markdown = MERMAID.sub(lambda m: f"![diagram]({_way(place, _diagram(m.group(1)))}){{ .diagram }}", markdown)
    return _indented(markdown)


def _outside(page: Path) -> list[Path]:
    found = []
    for _, target, _, _ in LINK.findall(page.read_text()):
        if "://" not in target and not target.startswith("mailto:"):
            path = Path(os.path.normpath(page.parent / target))
            if not path.is_relative_to(DOCS) and path.exists():
                found.append(path)
    return found


def _place(path: Path) -> str:
    """Return where a file of the repository is on the site."""
    name = path.relative_to(ROOT).as_posix()
    return f"source/{name}" if path.suffix in (*PICTURES, ".md") else f"source/{name}.md"


def _relinked(text: str, page: Path, place: str) -> str:
    def link(found: re.Match[str]) -> str:
        before, target, anchor, after = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found.group()
        path = Path(os.path.normpath(page.parent / target))
        if not path.exists():
            return found.group()  # MkDocs says so
        if path.is_relative_to(DOCS):
            return f"{before}{_way(place, path.relative_to(DOCS).as_posix())}{anchor or ''}{after}"
        return f"{before}{_way(place, _place(path))}{(anchor or '') if path.suffix == '.md' else ''}{after}"

    return LINK.sub(link, text)


def _way(place: str, to: str) -> str:
    return posixpath.relpath(to, posixpath.dirname(place) or ".")


def _shown(path: Path) -> str:
    """Return a page that shows a file, or what is in a folder."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        text, language = "\n".join(sorted(each.name for each in path.iterdir())), "text"
    else:
        text, language = path.read_text(), LANGUAGES.get(path.suffix, "text")
    fence = "`" * (3 + max((len(run) for run in re.findall(r"`{3,}", text)), default=0))
    return f"---\nsearch:\n  exclude: true\n---\n\n# {name}\n\n{fence}{language}\n{text.rstrip()}\n{fence}\n"


def _diagram(source: str) -> str:
    return f"pictures/{hashlib.sha256(source.encode()).hexdigest()[:16]}.svg"


def _drawn(source: str, page: Path) -> str:
    import mmdr

    try:
        return str(mmdr.render(source).svg())
    except Exception as error:
        raise PluginError(f"{page}: the diagram cannot be drawn: {error}\n{source}") from error


def _indented(text: str) -> str:
    """Indent lists by four and set them apart: here a list's text begins behind its mark, as in CommonMark."""
    lines: list[str] = []
    fence = ""
    #: of the items that a line may be in: where their text began, and begins now
    items: list[tuple[int, int]] = []
    for line in text.splitlines():
        bare = line.lstrip()
        indent = len(line) - len(bare)
        if not fence and bare:
            while items and indent < items[-1][0]:
                items.pop()
        now = items[-1][1] + max(0, indent - items[-1][0]) if items else indent
        if bare.startswith("```"):
            bare = bare.split(" ")[0]  # `python script` is for tests
            fence = "" if fence and bare.rstrip() == fence else fence or bare[: len(bare) - len(bare.lstrip("`"))]
        elif not fence and (item := ITEM.match(line)) and (items or indent < 4):
            before = lines[-1] if lines else ""
            if before.strip() and not items and not ITEM.match(before):
                lines.append("")
            items.append((indent + len(item.group(2)) + 1, now + 4))
        lines.append(" " * now + bare if bare else "")
    return "\n".join(lines) + "\n"
