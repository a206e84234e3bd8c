"""The site of the docs: it is built strictly, holds all pages as they are written, works from a file and loads nothing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").rglob("*.md"))
FENCE = re.compile(r"^ *```.*?^ *```$", re.M | re.S)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
#: what a browser fetches by itself
LOADED = {("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("link", "href"), ("object", "data")}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install -e '.[docs]'")
    pytest.importorskip("material")
    pytest.importorskip("mmdr")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "-q", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Elements(HTMLParser):
    """What a page loads, and how often it has which tags in its article."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.tags: list[str] = []
        self.in_article = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag == "article":
            self.in_article = True
        if self.in_article:
            self.tags.append(tag)
        if tag == "link" and given.get("rel") == "canonical":
            return
        self.loaded += [value for name, value in attrs if (tag, name) in LOADED and value]

    def handle_endtag(self, tag):
        if tag == "article":
            self.in_article = False


def built(site: Path, page: Path) -> Path:
    place = page.relative_to(ROOT / "docs")
    return site / (place.with_name("index.html") if page.name == "README.md" else place.with_suffix(".html"))


def test_each_page_is_listed_once_for_the_navigation():
    listed = re.findall(r"\]\(([^)#]+\.md)\)", (ROOT / "docs" / "README.md").read_text())
    pages = {str(page.relative_to(ROOT / "docs")) for page in PAGES} - {"README.md"}
    assert sorted(listed) == sorted(pages)


def test_no_page_loads_anything_from_elsewhere_and_all_that_it_loads_is_there(site):
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # is for servers
            continue
        for value in Elements(page.read_text()).loaded:
            assert not re.match(r"(\w+:)?//", value), f"{page}: {value}"
            assert (page.parent / value.split("?")[0].split("#")[0]).exists(), f"{page}: {value}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"""url\(["']?(https?:)?//|@import""", sheet.read_text()), sheet


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT / "docs")))
def test_a_page_has_the_headings_lists_and_blocks_that_were_written(site, page):
    text = page.read_text()
    prose = FENCE.sub("", text)
    tags = Elements(built(site, page).read_text()).tags
    assert sum(tags.count(f"h{level}") for level in range(1, 7)) == len(re.findall(r"^#+ ", prose, re.M))
    assert tags.count("li") == len(re.findall(r"^ {0,3}(?:[-*]|\d+\.) ", prose, re.M))
    assert tags.count("pre") >= len(FENCE.findall(text)) - text.count("```mermaid")


@pytest.fixture
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    if CHROMIUM is None:
        pytest.skip("there is no chromium: apt-get install chromium")
    with sync.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def test_search_works_from_a_file_and_the_browser_asks_no_one_else(site, browser):
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.click("input.md-search__input")
    page.locator("input.md-search__input").press_sequentially("watermark")
    page.wait_for_selector(".md-search-result__item a")
    assert "how-to/windows.html" in "".join(
        a.get_attribute("href") for a in page.query_selector_all(".md-search-result__item a")
    )
    page.goto((site / "explanation" / "rescaling.html").as_uri())
    drawn = page.evaluate("[...document.querySelectorAll('img.diagram')].map(each => each.naturalWidth)")
    assert len(drawn) == 3 and all(drawn)
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
