"""A clone works anywhere: no file names somebody's machine or a package host."""

import re

import pytest

from tests.tidy.repository import all_files, broken

# A path of a run (`run-1/work/`) is no machine's: something stands before its first slash.
MACHINE_PATH = re.compile(r"(?<![\w}>)\]*.$-])/(?:work|root|farm)/")
PACKAGE_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|debian)\.(?:org|net|com)\b")
LOCK_WITH_HOSTS = "uv.lock"


def machine_names(text: str) -> list[str]:
    found = [*MACHINE_PATH.finditer(text), *PACKAGE_HOST.finditer(text)]
    return [f"names {match[0]}" for match in found]


def test_no_file_names_a_machine_or_a_package_host():
    assert broken(machine_names, all_files()) == []


def test_no_lock_file_that_names_its_hosts():
    assert [path for path in all_files() if path.name == LOCK_WITH_HOSTS] == []


# Joined here, or this file would break its own rule.
@pytest.mark.parametrize(
    "parts",
    [("cd ", "/work", "/x"), ('"', "/root", '/x"'), ("https://", "pypi", ".org/simple")],
)
def test_a_machine_or_a_host_is_found(parts):
    assert machine_names("".join(parts))


@pytest.mark.parametrize("text", ["run-1/work/x", "share, work/", "{home}/work/", "/workers/7"])
def test_a_relative_path_is_accepted(text):
    assert not machine_names(text)
