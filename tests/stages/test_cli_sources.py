"""`tidewheel register URL`: definitions from archives and repositories, which nobody trusts."""

import io
import os
import tarfile
import threading
import zipfile

import psutil
import pytest

from tests.support.cli_fixture import EVERYWHERE
from tests.support.repositories import Repository, answering, sending
from tests.support.workflow_folders import FLOW, PYTHON, put, sip_files
from tidewheel.runners.git import GitTooMuch, fetch_archive

CAN_RUN = "vis/1.0.0: registered; it can run; each request must give site\n"


@pytest.fixture
def repository(tidewheel):
    """With a workflow in a folder of its own, tagged, and a later state that is not."""
    made = Repository(tidewheel.folder / "elsewhere/imaging")
    put(made.folder / "workflows", sip_files())
    put(made.folder, {"README.md": "Not for tidewheel.\n"})
    made.tagged = made.commit("v1.2")
    put(made.folder / "workflows", {"stages/b/1.0.0/script.sh": "echo later\n"})
    made.later = made.commit()
    put(made.folder / "workflows", {"stages/b/1.0.0/script.sh": "echo not committed\n"})
    return made


def source(tidewheel, name="vis"):
    return tidewheel("workflows", "show", name, "--json").json["source"]


# ---- repositories ----


@EVERYWHERE
def test_a_folder_of_a_tag_is_registered_and_where_it_came_from_is_kept(tidewheel, repository):
    url = f"git+file://{repository.folder}@v1.2#workflows"
    made = tidewheel("register", url)
    kept = f"file://{repository.folder}"
    assert (made.status, made.err) == (0, "")
    told = f"{kept}@v1.2#workflows (commit {repository.tagged})"
    assert made.out == f"{CAN_RUN}  from {told}\n"
    assert f"\nfrom {told}\n" in tidewheel("workflows", "show", "vis").out
    assert source(tidewheel) == {
        "url": kept,
        "ref": "v1.2",
        "commit": repository.tagged,
        "folder": "workflows",
        "sha256": "",
    }
    listed = tidewheel("workflows", "--json").json["workflows"]
    assert [one["source"]["ref"] for one in listed] == ["v1.2"]
    ran = tidewheel("run", "vis", "-p", "site=north")
    assert ran.status == 0, ran.err
    assert tidewheel("log", "vis/run1", "1/b").out == "done\n"


@pytest.mark.parametrize("ref", ["", "@main", "@{later}"])
@pytest.mark.parametrize("form", ["{folder}", "file://{folder}", "git+file://{folder}"])
def test_a_repository_is_what_is_committed_in_it(tidewheel, repository, form, ref):
    word = form.format(folder=repository.folder) + ref.format(later=repository.later)
    made = tidewheel("register", f"{word}#workflows/vis-1.0.0.yaml")
    assert made.status == 0, made.err
    assert source(tidewheel)["commit"] == repository.later
    assert source(tidewheel)["folder"] == "workflows/vis-1.0.0.yaml"
    ran = tidewheel("run", "vis", "-p", "site=north")
    assert tidewheel("log", "vis/run1", "1/b").out == "later\n", ran.err


def test_a_folder_of_this_machine_is_taken_as_it_is_even_in_a_repository(tidewheel, repository):
    made = tidewheel("register", str(repository.folder / "workflows"))
    assert (made.status, made.out) == (0, CAN_RUN)
    assert source(tidewheel) is None
    tidewheel("run", "vis", "-p", "site=north")
    assert tidewheel("log", "vis/run1", "1/b").out == "not committed\n"


def test_a_repository_without_a_working_tree_is_one_by_its_path(tidewheel, repository):
    bare = tidewheel.folder / "imaging.git"
    repository.git("clone", "--quiet", "--bare", str(repository.folder), str(bare))
    assert tidewheel("register", "imaging.git@v1.2#workflows").status == 0
    assert source(tidewheel)["commit"] == repository.tagged


def test_a_flow_is_called_as_its_folder_or_repository_is(tidewheel):
    tide = Repository(tidewheel.folder / "tide")
    put(tide.folder, {"flow.cylc": FLOW})
    put(tide.folder / "flows/ebb", {"flow.cylc": FLOW})
    tide.commit()
    made = tidewheel("register", "git+file://" + str(tide.folder))
    assert made.out.startswith("tide/2.1: registered; it can run\n"), made.err
    made = tidewheel("register", f"{tide.folder}@main#flows/ebb")
    assert made.out.startswith("ebb/2.1: registered; it can run\n"), made.err


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("@v9#workflows", "has no 'v9'"),
        ("@v1.2#elsewhere", "has no file or folder 'elsewhere'"),
        ("@v1.2#../workflows", "is not a path inside"),
        ("@v1.2#/etc", "is not a path inside"),
        ("@--upload-pack=touch#workflows", "cannot be a branch, tag or commit"),
        ("@main:refs/heads/x#workflows", "cannot be a branch, tag or commit"),
        ("@v1.2", "there is no definition in"),
        ("@v1.2", "name the folder after #: workflows\n"),
    ],
)
def test_what_a_repository_has_not_is_told(tidewheel, repository, word, said):
    refused = tidewheel("register", f"git+file://{repository.folder}{word}")
    assert refused.status == 2 and said in refused.err, refused.err
    assert "/tmp/tidewheel-" not in refused.err
    assert tidewheel("workflows", "--json").json["workflows"] == []


# ---- archives ----


@pytest.fixture
def archives(tidewheel, repository):
    """What servers of repositories offer, and what people pack themselves."""
    folder = tidewheel.folder / "packed"
    folder.mkdir()
    repository.archive(folder / "imaging-1.2.tar.gz")
    repository.archive(folder / "imaging-1.2.zip")
    with tarfile.open(folder / "own.tar", "w") as own:
        own.add(repository.folder / "workflows", ".")
    return folder


@pytest.mark.parametrize("form", ["packed/{}", "file://{folder}/{}"])
@pytest.mark.parametrize("file", ["imaging-1.2.tar.gz", "imaging-1.2.zip"])
@pytest.mark.parametrize("folder", ["workflows", "imaging-1.2/workflows"])
def test_an_archive_says_of_which_commit_it_is(
    tidewheel, repository, archives, form, file, folder
):
    word = form.format(file, folder=archives)
    made = tidewheel("register", f"{word}#{folder}")
    assert made.status == 0, made.err
    told = source(tidewheel)
    assert (told["commit"], told["folder"]) == (repository.later, folder)
    assert told["url"] == f"file://{archives}/{file}"
    assert len(told["sha256"]) == 64


@pytest.mark.usefixtures("archives")
def test_an_archive_of_a_folder_needs_no_folder(tidewheel):
    made = tidewheel("register", "packed/own.tar")
    assert made.status == 0, made.err
    assert source(tidewheel)["commit"] == ""


@EVERYWHERE
def test_an_archive_is_fetched_by_the_command_and_not_by_the_server(
    tidewheel, repository, tmp_path
):
    packed = repository.archive(tmp_path / "x.tar.gz").read_bytes()
    asked = []

    def answer(request):
        asked.append((request.path, request.headers.get("Authorization")))
        sending(packed)(request)

    with answering(answer) as address:
        made = tidewheel("register", f"{address}/imaging-1.2.tar.gz?key=secret#workflows")
    assert made.status == 0, made.err
    assert asked == [("/imaging-1.2.tar.gz?key=secret", None)]
    assert source(tidewheel)["url"] == f"{address}/imaging-1.2.tar.gz"
    assert "secret" not in tidewheel("workflows", "show", "vis", "--json").out


def packed(*members):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, content, changed in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            for field, value in changed.items():
                setattr(info, field, value)
            archive.addfile(info, io.BytesIO(content))
    return raw.getvalue()


GOOD = [(path, text.encode(), {}) for path, text in sip_files().items()]
LINK = {"type": tarfile.SYMTYPE, "linkname": "/etc"}
ZEROS = bytes(80 * 1024 * 1024)


@pytest.mark.parametrize(
    ("members", "said"),
    [
        ([("../out", b"x", {})], "leads somewhere else"),
        ([("/tmp/out", b"x", {})], "leads somewhere else"),
        ([("stages/../../out", b"x", {})], "leads somewhere else"),
        ([("there", b"", LINK), ("there/passwd", b"x", {})], "is both a file and a folder"),
        ([("twice", b"1", {}), ("twice", b"2", {})], "is there twice"),
        ([("stages/b/1.0.0/l", b"", LINK)], "stages/b/1.0.0/l is a link"),
        ([("stages/b/1.0.0/l", b"", LINK | {"type": tarfile.LNKTYPE})], "is a link"),
        ([("stages/b/1.0.0/d", b"", {"type": tarfile.CHRTYPE})], "is a link"),
        ([(f"stages/{'d/' * 2000}x", b"", {})], "lies more than 64 folders deep"),
        ([("stages/b/1.0.0/huge", bytes(40_000_000), {})], "is too large"),
        ([("zeros", ZEROS, {})], "is too large"),
    ],
)
def test_what_leads_elsewhere_or_is_too_much_is_refused(tidewheel, members, said):
    (tidewheel.folder / "x.tgz").write_bytes(packed(*GOOD, *members))
    refused = tidewheel("register", "x.tgz")
    assert refused.status == 2 and said in refused.err, refused.err
    assert not list(tidewheel.folder.parent.rglob("out"))
    assert tidewheel("workflows", "--json").json["workflows"] == []


def test_what_no_stage_needs_is_not_in_the_way(tidewheel):
    others = [("docs/latest", b"", LINK), ("docs/picture", bytes(2_000_000), {})]
    others += [("log/x", b"", {}), (".git/hooks/post-checkout", b"", {})]
    (tidewheel.folder / "x.tgz").write_bytes(packed(*GOOD, *others))
    assert tidewheel("register", "x.tgz").status == 0
    flow = [("tide/flow.cylc", FLOW.encode(), {}), ("tide/bin/run", b"", LINK)]
    (tidewheel.folder / "tide.tgz").write_bytes(packed(*flow))
    refused = tidewheel("register", "tide.tgz")
    assert refused.status == 2 and "bin/run is a link" in refused.err


NO_ARCHIVES = [b"", b"<html>sign in</html>", b"PK\x03\x04", b"\x1f\x8b\x08"]


@pytest.mark.parametrize("content", NO_ARCHIVES)
def test_what_is_no_archive_is_told(tidewheel, content):
    with answering(sending(content)) as address:
        refused = tidewheel("register", f"{address}/x.tar.gz")
    assert refused.status == 2 and "is not a tar, tar.gz or zip" in refused.err


def test_a_zip_that_lies_about_its_sizes_is_refused(tidewheel):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w", compression=zipfile.ZIP_DEFLATED) as archive:
        for path, text in sip_files().items():
            archive.writestr(path, text)
    lying = raw.getvalue().replace(b"PK\x01\x02", b"PK\x01\x03")
    (tidewheel.folder / "x.zip").write_bytes(lying)
    assert tidewheel("register", "x.zip").status == 2


# ---- nothing of it is trusted ----


def test_no_code_from_elsewhere_runs_when_it_is_registered_or_run(tidewheel):
    made = tidewheel.folder / "made"
    text = f"#!jinja2\n{FLOW}    [[c]]\n        script = echo {{{{ 1 | own }}}}\n"
    put(
        tidewheel.folder / "own/tide",
        {
            "flow.cylc": text,
            "Jinja2Filters/own.py": f"open({str(made)!r}, 'w')\ndef own(x):\n    return x\n",
        },
    )
    with tarfile.open(tidewheel.folder / "tide.tar", "w") as archive:
        archive.add(tidewheel.folder / "own/tide", "tide")
    registered = tidewheel("register", "tide.tar")
    assert "it cannot run as it is" in registered.out, registered
    tidewheel("run", "tide")
    tidewheel("validate", "tide")
    assert not made.exists()
    assert tidewheel("validate", "own/tide").status == 0  # the folder is the user's own
    assert made.exists()


def test_a_python_file_from_elsewhere_is_not_executed(tidewheel):
    made = tidewheel.folder / "made"
    written = f"open({str(made)!r}, 'w')\n{PYTHON}".encode()
    (tidewheel.folder / "x.tar").write_bytes(packed(("programs/cycle.py", written, {})))
    refused = tidewheel("register", "x.tar#cycle.py")
    assert refused.status == 2 and "is not executed from a remote source" in refused.err
    assert "there is no definition in" in tidewheel("register", "x.tar").err
    assert not made.exists()


def test_no_hook_filter_or_helper_of_anybody_runs(tidewheel, repository):
    made = tidewheel.folder / "made"
    program = tidewheel.folder / "program"
    program.write_text(f'#!/bin/sh\necho "$0" >> {made}\ncat\n')
    program.chmod(0o755)
    for hook in ("post-checkout", "pre-receive", "reference-transaction", "post-index-change"):
        (repository.folder / ".git/hooks").mkdir(exist_ok=True)
        (repository.folder / ".git/hooks" / hook).symlink_to(program)
    for name in ("core.fsmonitor", "uploadpack.packObjectsHook", "filter.own.smudge"):
        repository.git("config", name, str(program))
    put(repository.folder, {".gitattributes": "* filter=own\n"})
    repository.commit()
    assert made.exists(), "they do run where the owner works"
    made.unlink()
    home = tidewheel.folder / "home"
    own = f"[credential]\n\thelper = {program}\n[core]\n\taskPass = {program}\n"
    put(home, {".gitconfig": own, ".netrc": "machine 127.0.0.1 login me password secret\n"})
    environment = {
        "HOME": str(home),
        "GIT_ASKPASS": str(program),
        "SSH_ASKPASS": str(program),
        "GIT_EXTERNAL_DIFF": str(program),
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.fsmonitor",
        "GIT_CONFIG_VALUE_0": str(program),
    }
    taken = tidewheel("register", f"git+file://{repository.folder}#workflows", **environment)
    assert taken.status == 0, taken.err
    asked = []

    def answer(request):
        asked.append(request.headers.get("Authorization"))
        sending(b"", 401, **{"WWW-Authenticate": "Basic realm=x"})(request)

    with answering(answer) as address:
        refused = tidewheel("register", f"git+{address}/imaging.git#workflows", **environment)
    assert refused.status == 2 and "refused access" in refused.err
    assert asked and set(asked) == {None}
    assert not made.exists(), made.read_text()


# ---- where nothing answers ----


@pytest.mark.parametrize("scheme", ["https://", "git+https://"])
def test_without_a_network_it_says_what_to_do(tidewheel, scheme):
    refused = tidewheel("register", f"{scheme}127.0.0.1:1/imaging.tar.gz#workflows")
    assert refused.status == 3, refused.err
    assert "could not be fetched" in refused.err
    assert "bring the files here and register their folder" in refused.err


def test_an_answer_that_is_no_archive_says_what_it_was(tidewheel):
    with answering(sending(b"", 404)) as address:
        gone = tidewheel("register", f"{address}/x.tar.gz")
    assert gone.status == 2 and "answers with 404" in gone.err
    with answering(sending(b"", 302, Location="http://other.example.org/x.tar.gz")) as address:
        led = tidewheel("register", f"{address}/x.tar.gz")
    assert led.status == 3 and "an address that is not https" in led.err
    with answering(sending(b"", 302, Location="file:///etc/passwd")) as address:
        led = tidewheel("register", f"{address}/x.tar.gz")
    assert led.status in (2, 3) and "x.tar.gz" in led.err
    with answering(sending(b"short", **{"Content-Length": "1000"})) as address:
        broken = tidewheel("register", f"{address}/x.tar.gz")
    assert broken.status == 3 and "could not be fetched" in broken.err


def test_where_there_is_no_git_an_archive_is_proposed(tidewheel, repository):
    empty = tidewheel.folder / "no-programs"
    empty.mkdir()
    word = f"git+file://{repository.folder}#workflows"
    refused = tidewheel("register", word, PATH=str(empty))
    assert refused.status == 2 and "git, which is not installed here" in refused.err
    assert os.listdir(empty) == []


@pytest.mark.parametrize(
    ("ssh_says", "told"),
    [
        (
            "git@example.org: Permission denied (publickey).",
            "Check that your ssh key may read it",
        ),
        ("Host key verification failed.", "ssh does not know the key of the host of"),
        ("ssh: connect to host example.org port 22: Connection refused", "try again"),
        ("ssh: something new", "cannot be fetched: ssh: something new"),
    ],
)
def test_what_ssh_refuses_is_told(tidewheel, ssh_says, told):
    programs = tidewheel.folder / "programs"
    put(programs, {"ssh": f"#!/bin/sh\necho '{ssh_says}' >&2\nexit 255\n"})
    (programs / "ssh").chmod(0o700)
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    refused = tidewheel("register", "git+ssh://git@example.org/x.git#flows", PATH=path)
    assert refused.status == (3 if told == "try again" else 2)
    assert told in refused.err


# ---- limits of git ----


def test_git_is_ended_with_all_that_it_started_when_its_time_is_over():
    over = threading.Event()
    with answering(lambda _: over.wait(60)) as address:
        with pytest.raises(GitTooMuch, match="too long"):
            fetch_archive(f"{address}/x.git", "", "", seconds_max=1.0, bytes_max=1_000)
        left = [one for one in psutil.process_iter(["cmdline"]) if _asks(one, address)]
        over.set()
    assert left == []


def _asks(process, address):
    return any(address in word for word in process.info["cmdline"] or ())


def test_a_commit_that_is_too_large_is_not_taken(repository):
    url = f"file://{repository.folder}"
    with pytest.raises(GitTooMuch, match="more than 1000 bytes"):
        fetch_archive(url, "", "", seconds_max=60.0, bytes_max=1_000)
    whole = fetch_archive(url, "v1.2", "workflows/stages", seconds_max=60.0, bytes_max=10**6)
    assert whole.commit == repository.tagged
    with tarfile.open(fileobj=io.BytesIO(whole.content)) as archive:
        files = [one.name for one in archive if one.isfile()]
    assert all(one.startswith("workflows/stages/") for one in files) and len(files) == 3
