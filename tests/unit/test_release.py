"""The release script refuses before it builds: a checkout that is not the version, a missing token, a missing key."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / ".ci" / "release"
DONE = "# Changes\n\n## Unreleased\n\n## 1.2.3\n\n- News.\n"


@pytest.fixture
def release(tmp_path, monkeypatch):
    """The script, for a checkout that is ready to be version 1.2.3."""
    loader = SourceFileLoader("release", str(SCRIPT))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    made = module_from_spec(spec_from_loader("release", loader))
    loader.exec_module(made)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):  # as a hook of git has them
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(made, "ROOT", tmp_path)
    monkeypatch.setattr(made, "build", lambda: pytest.fail("it was built"))
    (tmp_path / "esault").mkdir()
    (tmp_path / "esault" / "version.py").write_text('VERSION = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(DONE)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "all")
    git(tmp_path, "tag", "v1.2.3")
    return made


def git(folder, *words):
    who = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True)


def refusal(release, monkeypatch, *words, token="t"):
    monkeypatch.setenv("ESAULT_RELEASE_TOKEN", token)
    monkeypatch.setattr(sys, "argv", ["release", *words])
    with pytest.raises(SystemExit) as ended:
        release.main()
    return str(ended.value)


def test_a_tagged_commit_with_its_section_may_be_uploaded(release):
    assert release.check_tag("1.2.3") == []


def test_another_version_or_a_change_may_not_and_all_reasons_are_told(release, tmp_path):
    (tmp_path / "dirt").touch()
    changed, tag, section = release.check_tag("1.2.4")
    assert "not committed" in changed
    assert "git tag -s v1.2.4" in tag
    assert "section 1.2.4" in section


def test_news_under_unreleased_are_not_in_the_version_that_is_published(release, tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(DONE.replace("Unreleased\n", "Unreleased\n\n- More news.\n"))
    git(tmp_path, "commit", "-q", "-a", "-m", "more")
    git(tmp_path, "tag", "-f", "v1.2.3")
    assert release.check_tag("1.2.3") == ["CHANGELOG.md: what stands under Unreleased is not yet the section 1.2.3"]


def test_an_upload_without_a_token_ends_before_the_build(release, monkeypatch):
    assert refusal(release, monkeypatch, "--upload", "http://localhost:1/", token="").endswith("TOKEN is empty")


def test_a_key_that_gpg_has_not_ends_before_the_build(release, monkeypatch, tmp_path):
    if shutil.which("gpg") is None:
        pytest.skip("there is no gpg")
    monkeypatch.setenv("GNUPGHOME", str(tmp_path))
    tmp_path.chmod(0o700)
    assert "--sign nobody@x: gpg has no such secret key" in refusal(release, monkeypatch, "--sign", "nobody@x")
