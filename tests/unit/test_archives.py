"""Real archives, good and malicious: what leads elsewhere or is too large is refused."""

import gzip
import io
import stat
import tarfile
import zipfile

import pytest

from tidewheel.core.graph.findings import Findings
from tidewheel.services.definitions.snapshot import FILE_BYTES_MAX, FOLDER_BYTES_MAX
from tidewheel.services.registry.bundles import ENTRIES_MAX, read_archive

GOOD = {"vis-1.0.0.yaml": b"text", "stages/a/1.0.0/run.sh": b"#!/bin/sh\n", "empty": b""}


def tar_of(*members, packed=False):
    """Members are (TarInfo or name, content)."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz" if packed else "w") as archive:
        for given, content in members:
            info = tarfile.TarInfo(given) if isinstance(given, str) else given
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


def member(name, kind=tarfile.REGTYPE, mode=0o644, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.mode, info.linkname = kind, mode, target
    return info


def zip_of(*members, **how):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", **({"compression": zipfile.ZIP_DEFLATED} | how)) as archive:
        for given, content in members:
            archive.writestr(given, content)
    return raw.getvalue()


def entry(name, mode):
    info = zipfile.ZipInfo(name)
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def read(content):
    findings = Findings()
    bundle = read_archive(content, findings)
    return bundle, [one.code for one in findings.sorted()]


def refused(content):
    bundle, codes = read(content)
    assert bundle is None
    return codes


# ---- good ones ----


@pytest.mark.parametrize(
    "content",
    [tar_of(*GOOD.items()), tar_of(*GOOD.items(), packed=True), zip_of(*GOOD.items())],
    ids=["tar", "tar.gz", "zip"],
)
def test_each_kind_of_archive_is_read(content):
    bundle, codes = read(content)
    assert (dict(bundle.files), codes) == (GOOD, [])
    assert bundle.executable == frozenset()


def test_names_as_tar_writes_them_and_folders_are_understood():
    content = tar_of(
        (member(".", tarfile.DIRTYPE), b""),
        (member("./stages", tarfile.DIRTYPE), b""),
        (member("./stages/run", mode=0o755), b"x"),
    )
    bundle, codes = read(content)
    assert (dict(bundle.files), codes) == ({"stages/run": b"x"}, [])
    assert bundle.executable == {"stages/run"}


def test_whoever_may_execute_a_file_is_read_from_a_zip_as_well():
    bundle, _ = read(zip_of((entry("run", stat.S_IFREG | 0o755), b"x"), ("plain", b"y")))
    assert bundle.executable == {"run"}


# ---- paths ----


@pytest.mark.req("S13")
@pytest.mark.parametrize(
    "path",
    ["../evil", "a/../../evil", "/etc/passwd", "./../evil", "a//b", "a/./b", "..", "log/x"],
)
def test_a_path_that_leads_elsewhere_is_refused(path):
    assert refused(tar_of(("good", b"x"), (path, b"y"))) == ["bad-path"]
    assert refused(zip_of(("good", b"x"), (path, b"y"))) == ["bad-path"]


@pytest.mark.req("S13")
def test_names_that_cannot_be_printed_are_refused():
    assert refused(tar_of(("a\x1b[2J", b"x"))) == ["bad-path"]
    assert refused(zip_of(("a\nb", b"x"))) == ["bad-path"]
    hidden = zip_of(("abcd", b"x")).replace(b"abcd", b"a\0cd")
    assert refused(hidden)


@pytest.mark.req("S13")
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_file_that_is_there_twice_or_is_a_folder_as_well_is_refused():
    for made in (tar_of, zip_of):
        assert refused(made(("a", b"x"), ("a", b"y"))) == ["bad-path"]
        assert refused(made(("a", b"x"), ("a/b", b"y"))) == ["bad-path"]


# ---- what is not a regular file ----


@pytest.mark.req("S13")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (tarfile.SYMTYPE, "link"),
        (tarfile.LNKTYPE, "link"),
        (tarfile.CHRTYPE, "not-a-file"),
        (tarfile.BLKTYPE, "not-a-file"),
        (tarfile.FIFOTYPE, "not-a-file"),
        (tarfile.GNUTYPE_SPARSE, "not-a-file"),
        (b"Z", "not-a-file"),
    ],
)
def test_links_devices_pipes_and_oddities_are_refused(kind, code):
    codes = refused(tar_of(("good", b"x"), (member("bad", kind, target="good"), b"")))
    assert codes in ([code], ["bad-archive"])


@pytest.mark.req("S13")
def test_links_devices_and_pipes_of_a_zip_are_refused():
    kinds = {"link": stat.S_IFLNK, "pipe": stat.S_IFIFO, "device": stat.S_IFCHR}
    content = zip_of(*((entry(name, kind | 0o777), b"/etc") for name, kind in kinds.items()))
    assert sorted(refused(content)) == ["link", "not-a-file", "not-a-file"]


@pytest.mark.req("S13")
@pytest.mark.parametrize("mode", [0o4755, 0o2755, 0o1755])
def test_files_with_special_rights_are_refused(mode):
    assert refused(tar_of((member("a", mode=mode), b"x"))) == ["special-mode"]
    assert refused(zip_of((entry("a", stat.S_IFREG | mode), b"x"))) == ["special-mode"]


# ---- size ----


@pytest.mark.nightly
@pytest.mark.req("S13")
def test_a_million_entries_are_not_read():
    header = tarfile.TarInfo("a").tobuf()
    many = gzip.compress(header * 1_000_000, 9)
    assert len(many) < 8_000_000
    assert refused(many) == ["too-many-files"]


@pytest.mark.req("S13")
def test_too_many_entries_of_a_zip_are_not_even_listed():
    content = zip_of(*((f"f{n}", b"") for n in range(ENTRIES_MAX + 1)))
    assert refused(content) == ["too-many-files"]


@pytest.mark.req("S13")
def test_a_file_that_unpacks_to_too_much_is_refused():
    large = bytes(FILE_BYTES_MAX + 1)
    assert refused(tar_of(("a", large), packed=True)) == ["file-too-large"]
    assert refused(zip_of(("a", large))) == ["file-too-large"]
    bundle, _ = read(zip_of(("a", large[1:])))
    assert len(bundle.files["a"]) == FILE_BYTES_MAX


@pytest.mark.slow
@pytest.mark.req("S13")
def test_archives_that_unpack_to_too_much_are_refused():
    count = FOLDER_BYTES_MAX // FILE_BYTES_MAX + 1
    files = [(f"f{n}", bytes(FILE_BYTES_MAX)) for n in range(count)]
    assert refused(tar_of(*files, packed=True)) == ["archive-too-large"]
    assert refused(zip_of(*files)) == ["archive-too-large"]


@pytest.mark.slow
@pytest.mark.req("S13")
def test_a_bomb_of_one_huge_member_costs_no_more_than_the_limit():
    info = tarfile.TarInfo("a")
    info.size = 2**40
    bomb = gzip.compress(info.tobuf() + bytes(200 * 1024 * 1024), 9)
    assert refused(bomb) == ["archive-too-large", "file-too-large"]


@pytest.mark.req("S13")
@pytest.mark.parametrize("packed", [False, True])
def test_a_member_that_says_it_is_larger_than_all_disks_is_not_looked_for(packed):
    """It would be skipped piece by piece, which takes longer than anybody lives."""
    info = tarfile.TarInfo("a")
    info.size = 2**60
    content = info.tobuf() + bytes(10_240)
    found = refused(gzip.compress(content) if packed else content)
    assert found == ["bad-archive", "file-too-large"]


@pytest.mark.req("S13")
def test_a_file_without_a_name_is_refused():
    nameless = bytearray(zip_of(("a", b"x")))
    for sign, length, name in ((b"PK\x03\x04", 26, 30), (b"PK\x01\x02", 28, 46)):
        start = nameless.index(sign)
        nameless[start + length] = 0
        del nameless[start + name]
    # What follows lies one byte earlier for each name, and the directory is one shorter.
    end = nameless.index(b"PK\x05\x06")
    for place in (12, 16):
        nameless[end + place] -= 1
    assert refused(bytes(nameless)) == ["bad-path"]


@pytest.mark.req("S13")
def test_a_zip_that_lies_about_its_sizes_is_refused():
    content = bytearray(zip_of(("a", bytes(100_000))))
    true, false = (100_000).to_bytes(4, "little"), (10).to_bytes(4, "little")
    assert refused(bytes(content).replace(true, false)) == ["bad-archive"]


@pytest.mark.req("S13")
def test_ways_of_packing_without_a_bound_and_secrets_are_refused():
    assert refused(zip_of(("a", b"x" * 1000), compression=zipfile.ZIP_LZMA)) == ["not-a-file"]
    assert refused(zip_of(("a", b"x" * 1000), compression=zipfile.ZIP_BZIP2)) == ["not-a-file"]
    locked = bytearray(zip_of(("a", b"x")))
    for sign, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        locked[locked.index(sign) + offset] |= 1
    assert refused(bytes(locked)) == ["not-a-file"]


# ---- what is no archive ----


@pytest.mark.req("S13")
@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no archive at all" * 100,
        b"PK\x03\x04" + bytes(100),
        b"\x1f\x8b" + bytes(100),
        tar_of(("a", b"x" * 10_000))[:1_000],
        tar_of(("a", b"x" * 512), ("b", b"x"))[:1_024],
        zip_of(("a", b"x" * 10_000))[:-30],
        tar_of(("a", b"x" * 10_000), packed=True)[:-20],
        gzip.compress(b"no tar"),
    ],
    ids=[
        "empty",
        "text",
        "zip",
        "gzip",
        "half tar",
        "tar of one of two",
        "half zip",
        "half gzip",
        "gzip of text",
    ],
)
def test_what_is_no_archive_is_refused(content):
    assert refused(content) == ["bad-archive"]
