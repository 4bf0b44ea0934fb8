"""What a word of `tidewheel register` means: a path, an archive, a repository, or a mistake."""

import pytest

from tidewheel.client.definition_sources import BadPlace, place_of


def said(text):
    place = place_of(text)
    source = place.source
    return place.url, place.is_repository, source.url, source.ref, source.folder


@pytest.mark.parametrize(
    ("text", "asked", "url", "ref", "folder"),
    [
        ("git+https://h.org/b.git", "https://h.org/b.git", "git+https://h.org/b.git", "", ""),
        ("git+https://h.org/b@v1", "https://h.org/b", "git+https://h.org/b", "v1", ""),
        ("git+https://h.org/b@f/a#x/y", "https://h.org/b", "git+https://h.org/b", "f/a", "x/y"),
        ("git+https://h.org/b#./x/", "https://h.org/b", "git+https://h.org/b", "", "x"),
        ("git+ssh://git@h.org/b@v1", "ssh://git@h.org/b", "git+ssh://git@h.org/b", "v1", ""),
    ],
)
def test_a_repository_has_a_ref_and_a_folder(text, asked, url, ref, folder):
    assert said(text) == (asked, True, url, ref, folder)


@pytest.mark.parametrize("end", [".tar", ".tar.gz", ".tgz", ".zip"])
def test_an_archive_is_told_without_its_query(end):
    asked, is_repository, url, ref, folder = said(f"https://h.org/v@1{end}?key=s#a%20b")
    assert asked == f"https://h.org/v@1{end}?key=s"
    assert (is_repository, url, ref, folder) == (False, f"https://h.org/v@1{end}", "", "a b")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("ext::sh -c touch% x://", "nothing can be fetched"),
        ("ftp://h.org/x.tar.gz", "nothing can be fetched"),
        ("git+ext://h.org/x", "nothing can be fetched"),
        ("git://h.org/x", "nothing can be fetched"),
        ("https://h.org/team/repository", "does not end in .tar or .tar.gz or .tgz or .zip"),
        ("https://me:secret@h.org/x.tar.gz", "leave it out"),
        ("git+https://token@h.org/x", "leave it out"),
        ("git+ssh://me:secret@h.org/x", "leave it out"),
        ("http://h.org/x.tar.gz", "can be changed on the way"),
        ("git+http://h.org/x", "can be changed on the way"),
        ("git+ssh://-oProxyCommand=x/y", "names no host"),
        ("https:///x.tar.gz", "names no host"),
        ("https://h.org:x/x.tar.gz", "is not a valid URL"),
        ("git+https://h.org/x@", "no branch, tag or commit after @"),
        ("git+https://h.org/x@-v", "cannot be a branch, tag or commit"),
        ("git+https://h.org/x@a..b", "cannot be a branch, tag or commit"),
        ("git+https://h.org/x@a b", "nothing can be fetched"),
        ("git+https://h.org/x#../y", "is not a path inside"),
        ("git+https://h.org/x#/y", "is not a path inside"),
        ("git+https://h.org/x#a//b", "is not a path inside"),
        ("git+https://h.org/x#%00", "is not a path inside"),
        ("file://other.org/x.tar.gz", "is on another machine"),
        ("file:///nowhere/x.tar.gz", "there is no file or folder"),
    ],
)
def test_whatever_else_is_refused_before_anything_is_asked(text, why):
    with pytest.raises(BadPlace, match=why.replace(".", r"\.")):
        place_of(text)


def test_a_password_is_not_repeated():
    with pytest.raises(BadPlace) as refused:
        place_of("https://me:secret@h.org/x.tar.gz")
    assert "secret" not in str(refused.value)


def test_a_path_is_a_path_whatever_signs_are_in_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a@b#c", "plain", "x.yaml"):
        (tmp_path / name).mkdir()
        assert place_of(name) is None
    assert place_of("not-there") is None and place_of("not@there#either") is None
    with pytest.raises(BadPlace, match="neither an archive nor a repository"):
        place_of("plain@v1#x")
