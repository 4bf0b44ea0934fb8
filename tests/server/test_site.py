"""The web page as a server sends it: caching, policies, and what is there without a build."""

import gzip

import pytest

from tests.support.http_server import running_server
from tidewheel.server.resources.web_pages import PAGES

INDEX = b"<!doctype html><title>built</title>"
SCRIPT = b"export const built = true;\n" * 100


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder as the build leaves it."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "assets").mkdir()
    (folder / "index.html").write_bytes(INDEX)
    (folder / "assets" / "index-AbC123.js").write_bytes(SCRIPT)
    (folder / "assets" / "worker-AbC123.js").write_bytes(SCRIPT)
    (folder / "assets" / "plain.css").write_bytes(b"a { color: red }")
    (folder / "secret.txt").write_bytes(b"not for you")
    return folder


@pytest.fixture(scope="module")
def stranger(built, tmp_path_factory):
    url = f"sqlite:///{tmp_path_factory.mktemp('store')}/t.db"
    with running_server(url, web=built) as running:
        yield running.stranger()


@pytest.mark.parametrize("path", PAGES)
def test_every_address_is_the_page_whatever_its_parameters(stranger, path):
    filled = path.replace("{", "x%2F").replace("}", "")
    page = stranger.get(f"/{filled}?views=graph,table&select=1/a", Accept="text/html")
    assert (page.status, page.body) == (200, INDEX)
    assert page.headers["cache-control"] == "no-store"


def test_the_page_may_load_nothing_from_elsewhere_and_run_nothing_inline(stranger):
    """S10."""
    policy = stranger.get("//").headers["content-security-policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy and "http" not in policy


def test_a_file_named_by_its_hash_is_kept_for_ever(stranger):
    script = stranger.get("//assets/index-AbC123.js")
    assert script.body == SCRIPT
    assert script.headers["content-type"].startswith("text/javascript")
    assert script.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert "wasm" not in script.headers["content-security-policy"]
    assert "immutable" not in stranger.get("//assets/plain.css").headers["cache-control"]


def test_only_the_worker_may_compile(stranger):
    policy = stranger.get("//assets/worker-AbC123.js").headers["content-security-policy"]
    assert "script-src 'self' 'wasm-unsafe-eval'" in policy


def test_whoever_can_unpack_gets_less(stranger):
    packed = stranger.get("//assets/index-AbC123.js", Accept_Encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == SCRIPT and len(packed.body) < len(SCRIPT)


@pytest.mark.parametrize(
    "name",
    [
        "..%2Fsecret.txt",
        "..%2Findex.html",
        "%2Fetc%2Fpasswd",
        "nothing-1.js",
        "%00.js",
        "..",
        "secret.txt",
    ],
)
def test_nothing_else_is_found(stranger, name):
    """S11."""
    found = stranger.get(f"//assets/{name}")
    assert found.status == 404 and b"not for you" not in found.body


def test_without_a_build_the_plain_page_is_there(tmp_path):
    with running_server(f"sqlite:///{tmp_path}/t.db", web=tmp_path / "none") as server:
        answer = server.stranger().get("//")
        assert (answer.status, answer.headers["location"]) == (307, "/status")
        page = server.caller("read").get("//status", Accept="text/html")
        assert b"<h2>Runs</h2>" in page.body
