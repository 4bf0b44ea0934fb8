"""The pages as a site: built from nothing, fit for the server's policy, and part of a wheel."""

import re
import runpy
import zipfile
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest

from tests.support.release import packed
from tests.support.written_examples import ROOT

BUILDER = runpy.run_path(str(ROOT / "docs/build_site.py"))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of its own; that of the tree stays as it is."""
    folder = tmp_path_factory.mktemp("site")
    assert BUILDER["build"](folder / "work", folder / "site") == ""
    return folder / "site"


class Seen(HTMLParser):
    """Ids and addresses of a page."""

    def __init__(self):
        super().__init__()
        self.ids, self.addresses = set(), []

    def handle_starttag(self, tag, attrs):
        del tag
        given = dict(attrs)
        self.ids.add(given.get("id"))
        self.addresses += [given[name] for name in ("href", "src") if name in given]


def seen_in(page):
    seen = Seen()
    seen.feed(page.read_text(encoding="utf-8"))
    return seen


def test_every_address_of_the_site_is_a_file_of_it(site):
    pages = {page: seen_in(page) for page in site.rglob("*.html")}
    dead = []
    for page, seen in pages.items():
        for address in seen.addresses:
            parts = urlsplit(address)
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            there = there / "index.html" if there.is_dir() else there
            known = pages.get(there)
            missing = parts.fragment and known and unquote(parts.fragment) not in known.ids
            missing = missing or not address  # that would be the page itself
            if parts.scheme or parts.netloc or not there.is_file() or missing:
                dead.append(f"{page.relative_to(site)}: {address}")
    assert dead == []
    assert len(pages) > 60


def test_no_page_has_a_script_a_style_or_a_host_of_its_own(site):
    assert BUILDER["unfit"](site) == []
    page = (site / "concepts" / "leases.html").read_text(encoding="utf-8")
    assert re.search(
        r'<svg role="img" aria-label="Worker A is killed[^"]*" [^>]*class="tw"', page
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example.org/x.js"></script>'),
        ("a.html", "<script>alert(1)</script>"),
        ("a.html", '<p style="color:red">'),
        ("a.html", '<body onload="x()">'),
        ("a.css", "a{background:url(data:image/png;base64,AA)}"),
        ("a.css", "@import url(//fonts.example.org/x.css);"),
    ],
)
def test_a_page_that_would_break_the_policy_is_found(tmp_path, name, text):
    (tmp_path / name).write_text(text, encoding="utf-8")
    assert BUILDER["unfit"](tmp_path)


@pytest.mark.parametrize("built", [True, False])
def test_a_wheel_has_the_documentation_if_it_was_built(tmp_path, built):
    package = tmp_path / "src" / "tidewheel"
    (package / "server" / "manual_pages").mkdir(parents=True)
    (package / "__init__.py").touch()
    if built:
        (package / "server" / "manual_pages" / "index.html").touch()
    names = zipfile.ZipFile(packed(tmp_path)).namelist()
    assert ("tidewheel/server/manual_pages/index.html" in names) is built
