"""The documentation at /docs/: for everybody, under the same policy, from plain files only."""

import pytest

from tests.support.http_server import running_server
from tidewheel.server.openapi import document
from tidewheel.server.route_table import ROUTES

POLICY = "default-src 'self'"


@pytest.fixture(scope="module")
def manual(tmp_path_factory):
    """A small site, with something beside it that nobody may read."""
    root = tmp_path_factory.mktemp("built")
    folder = root / "manual"
    (folder / "assets" / "javascripts" / "workers").mkdir(parents=True)
    (folder / "index.html").write_text("<h1>Start</h1>", encoding="utf-8")
    (folder / "howto").mkdir()
    (folder / "howto" / "stalls.html").write_text("<h1>Stalls</h1>", encoding="utf-8")
    (folder / "assets" / "javascripts" / "workers" / "search.js").write_text("1", "utf-8")
    (folder / ".hidden.html").write_text("secret", encoding="utf-8")
    (folder / "notes.txt").write_text("secret", encoding="utf-8")
    (root / "secret.html").write_text("secret", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def reader(manual, tmp_path_factory):
    """Somebody without a token."""
    url = f"sqlite:///{tmp_path_factory.mktemp('server')}/tidewheel.db"
    with running_server(url, manual=manual) as server:
        yield server.stranger()


@pytest.mark.parametrize(
    ("path", "kind", "body"),
    [
        ("//docs/", "text/html", b"<h1>Start</h1>"),
        ("//docs/index.html", "text/html", b"<h1>Start</h1>"),
        ("//docs/howto/stalls.html?h=stall", "text/html", b"<h1>Stalls</h1>"),
        ("//docs/assets/javascripts/workers/search.js", "text/javascript", b"1"),
    ],
)
def test_pages_are_there_for_everybody_under_the_strict_policy(reader, path, kind, body):
    page = reader.get(path)
    assert (page.status, page.body) == (200, body)
    assert page.headers["content-type"].startswith(kind)
    assert page.headers["content-security-policy"].startswith(POLICY)
    assert page.headers["x-content-type-options"] == "nosniff"


def test_the_short_address_leads_there(reader):
    moved = reader.get("//docs")
    assert (moved.status, moved.headers["location"]) == (307, "/docs/")


@pytest.mark.parametrize(
    "path",
    [
        "//docs/none.html",
        "//docs/howto",
        "//docs/notes.txt",
        "//docs/.hidden.html",
        "//docs/../secret.html",
        "//docs/%2e%2e/secret.html",
        "//docs/..%2Fsecret.html",
        "//docs/howto/..%2F..%2Fsecret.html",
        "//docs/howto%2F..%2F..%2Fsecret.html",
        "//docs/%00.html",
        "//docs/a/b/c/d/e.html",
    ],
)
def test_nothing_else_can_be_read(reader, path):
    """S9: names come from callers."""
    page = reader.get(path)
    assert page.status == 404
    assert b"secret" not in page.body


def test_a_name_is_no_path_from_the_root(reader, manual):
    secret = str(manual.parent / "secret.html").replace("/", "%2F")
    assert reader.get(f"//docs/{secret}").status == 404


def test_a_copy_without_the_site_says_where_the_pages_are(tmp_path):
    url = f"sqlite:///{tmp_path}/tidewheel.db"
    with running_server(url, manual=tmp_path / "nothing") as server:
        page = server.stranger().get("//docs/")
    assert page.status == 404
    assert page.headers["content-type"].startswith("text/html")
    for words in (b"make docs", b"docs/index.md", b"tidewheel --help"):
        assert words in page.body


def test_the_documentation_is_no_part_of_the_interface_for_programs():
    assert not [path for path in document(ROUTES)["paths"] if path.startswith("/docs")]
