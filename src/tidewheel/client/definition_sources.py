"""Fetches definitions for who registers them: from archives, and from repositories of git.

It is done where the command was typed, with the rights of who typed it, never by a server: what
a server is sent are files. The other side is not trusted. What comes is bounded in bytes, files
and time, and put into a folder of its own, plain files only, each inside that folder; a link
stays there as one that leads nowhere, so that whatever would need it is refused with its place.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from tidewheel.core.operator.registry import WorkflowSource
from tidewheel.errors import Refused, Unavailable
from tidewheel.lazy_dataclasses import NamedTuple
from tidewheel.runners.git import GitMissing, GitProblem, GitTooMuch, fetch_archive
from tidewheel.services.definitions.snapshot import LEFT_OUT, MADE_BY_RUNS
from tidewheel.services.definitions.upload import path_findings
from tidewheel.services.registry.archives import (
    ArchiveTooLarge,
    BadArchive,
    archive_commit,
    archive_entries,
)

if TYPE_CHECKING:
    from http.client import HTTPMessage, HTTPResponse
    from urllib.request import Request

SECONDS_MAX = 120.0  # for all that is asked of one place
SILENCE_SECONDS_MAX = 30.0
ARCHIVE_BYTES_MAX = 64 * 1024 * 1024  # as it comes
UNPACKED_BYTES_MAX = 256 * 1024 * 1024  # of an archive, most of which may be for others
FOLDER_BYTES_MAX = 64 * 1024 * 1024  # of the folder that is asked for
ENTRIES_MAX = 100_000
FILES_MAX = 10_000  # of the folder that is asked for
REDIRECTS_MAX = 5
_READ_BYTES = 256 * 1024
GIT = "git+"
ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
_SCHEMES = ("https", "http", "file", "git+https", "git+http", "git+ssh", "git+file")
_REF = re.compile(r"[\w.+@/-]+", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FORMS = "write a path, https://HOST/FILE.tar.gz#FOLDER (or .zip), or git+https://HOST/REPO@REF#FOLDER"
_BY_HAND = "get the files yourself, and register their folder: tidewheel register FOLDER"
_NOWHERE = "a-link-that-is-not-followed"  # what every link leads to here


class BadPlace(Refused, code="bad_place", http_status=422):
    """No definition can be fetched from a place that is written so."""


class SourceRefused(Refused, code="source_refused"):
    """The place answered, and there is nothing to be had, or not for this caller."""


class SourceUnreachable(Unavailable, code="source_unreachable"):
    """The place does not answer."""


class SourcePlace(NamedTuple):
    """Says where definitions are, as somebody wrote it."""

    url: str  # what is asked; of a file of this machine its path
    source: WorkflowSource  # what is kept and told of it
    is_repository: bool


@contextmanager
def fetched_paths(
    texts: Sequence[str],
) -> Iterator[tuple[list[Path], Mapping[Path, WorkflowSource]]]:
    """Yields the paths that these words mean, and of those that were fetched from elsewhere
    what they came from. What was fetched is gone afterwards."""
    paths: list[Path] = []
    sources: dict[Path, WorkflowSource] = {}
    with ExitStack() as stack:
        for text in texts:
            place = place_of(text)
            if place is None:
                paths.append(Path(text))
                continue
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="tidewheel-source-")))
            path, source = _fetched(place, folder)
            paths.append(path)
            sources[path] = source
        yield paths, sources


# What a word means.


def place_of(text: str) -> SourcePlace | None:
    """Returns the archive or the repository that a word names; None for a file or folder of
    this machine, which may also not be there. Raises BadPlace."""
    if "://" in text:
        return _place_of_url(text)
    if Path(text).exists():
        return _place_of_path(text, "", "")
    before, hash_sign, folder = text.partition("#")
    path, at, ref = before, "", ""
    if not Path(before).exists():
        path, at, ref = before.rpartition("@")
    if (hash_sign or at) and path and Path(path).exists():
        found = _place_of_path(path, ref, folder)
        if found is None:
            raise BadPlace(
                f"{path} is neither an archive nor a repository, so it has no {at}{ref}"
                f"{hash_sign}{folder}; name a file or folder by its path alone"
            )
        return found
    return None


def _place_of_path(text: str, ref: str, folder: str) -> SourcePlace | None:
    path = Path(text)
    whole = str(path.resolve())
    if path.is_file() and path.name.endswith(ARCHIVES) and not ref:
        said = WorkflowSource(url=_file_url(whole), folder=_folder(folder))
        return SourcePlace(whole, said, is_repository=False)
    is_asked = bool(ref or folder)
    if path.is_dir() and (_is_bare(path) or (is_asked and (path / ".git").exists())):
        url = _file_url(whole)
        said = WorkflowSource(url=url, ref=_ref(ref), folder=_folder(folder))
        return SourcePlace(url, said, is_repository=True)
    return None


def _is_bare(path: Path) -> bool:
    return all((path / one).exists() for one in ("HEAD", "objects", "refs"))


def _file_url(path: str) -> str:
    return f"file://{quote(path)}"


def _place_of_url(text: str) -> SourcePlace:
    try:
        parts = urlsplit(text)
        parts.port  # noqa: B018 - it is read here
    except ValueError:
        raise BadPlace(f"{text[:200]!r} is not a valid URL; {_FORMS}") from None
    if parts.scheme not in _SCHEMES or not text.isprintable() or " " in text:
        raise BadPlace(f"nothing can be fetched from {text[:200]!r}; {_FORMS}")
    transport = parts.scheme.removeprefix(GIT)
    folder, host = _folder(unquote(parts.fragment)), parts.hostname or ""
    if transport == "file":
        return _place_of_file(text, unquote(parts.path), folder, host)
    if not host or host.startswith("-"):
        raise BadPlace(f"{text[:200]!r} names no host; {_FORMS}")
    if parts.password is not None or (parts.username is not None and transport != "ssh"):
        raise BadPlace(
            "other users could read the user name or password in the URL; leave it out, or "
            + _BY_HAND
        )
    if transport == "http" and host not in _LOOPBACK:
        raise BadPlace(
            "files sent over http can be changed on the way; write https://, or " + _BY_HAND
        )
    is_repository = parts.scheme.startswith(GIT)
    path, ref = parts.path, ""
    if is_repository and "@" in path:
        path, _, ref = path.rpartition("@")
        ref = unquote(ref)
        if not ref:
            raise BadPlace(f"{text[:200]!r} has no branch, tag or commit after @; {_FORMS}")
    elif not is_repository and not path.endswith(ARCHIVES):
        raise BadPlace(
            f"{_shown(parts.netloc, path)} does not end in {' or '.join(ARCHIVES)}; "
            f"for a repository write git+{transport}://…, or give the URL of an archive that "
            "its server offers"
        )
    told = urlunsplit((transport, parts.netloc, path, "", ""))
    asked = urlunsplit((transport, parts.netloc, path, parts.query, ""))
    said = WorkflowSource(
        url=f"{GIT}{told}" if is_repository else told, ref=_ref(ref), folder=folder
    )
    return SourcePlace(asked, said, is_repository=is_repository)


def _shown(host: str, path: str) -> str:
    return f"{host}{path}"[:200]


def _place_of_file(text: str, path: str, folder: str, host: str) -> SourcePlace:
    if host not in ("", "localhost"):
        raise BadPlace(f"{text[:200]!r} is on another machine; write file:///PATH")
    ref = ""
    if not Path(path).exists() and "@" in path:
        path, _, ref = path.rpartition("@")
    if not Path(path).exists():
        raise BadPlace(f"there is no file or folder {path}")
    is_repository = (Path(path) / ".git").exists() or _is_bare(Path(path))
    if not is_repository and (Path(path).is_dir() or ref):
        raise BadPlace(f"{path} is not a repository; register the folder by its path: {path}")
    whole = str(Path(path).resolve())
    said = WorkflowSource(url=_file_url(whole), ref=_ref(ref), folder=folder)
    return SourcePlace(said.url if is_repository else whole, said, is_repository=is_repository)


def _ref(text: str) -> str:
    if text and (not _REF.fullmatch(text) or text.startswith(("-", "/")) or ".." in text):
        raise BadPlace(f"{text[:100]!r} cannot be a branch, tag or commit")
    return text


def _folder(text: str) -> str:
    """Returns a path inside what is fetched; raises BadPlace if it leads elsewhere."""
    text = text.removeprefix("./").rstrip("/")
    if text and any(message for message in path_findings([f"x/{text}"])):
        raise BadPlace(
            f"{text[:100]!r} is not a path inside the fetched files; write a folder or a file "
            "there: #workflows/imaging"
        )
    return text


# Fetching.


def _fetched(place: SourcePlace, folder: Path) -> tuple[Path, WorkflowSource]:
    """Puts what a place holds into a folder; returns what is asked for there, and what is known
    of it now."""
    source = place.source
    if place.is_repository:
        content, commit = _of_repository(place)
        source = _known(source, commit=commit)
    else:
        is_far = "://" in place.url
        content = _download(place.url, source) if is_far else _read(Path(place.url))
        digest = hashlib.sha256(content).hexdigest()
        source = _known(source, commit=archive_commit(content), sha256=digest)
    return _unpacked(content, source, folder), source


def _known(source: WorkflowSource, *, commit: str, sha256: str = "") -> WorkflowSource:
    return WorkflowSource(
        url=source.url, ref=source.ref, folder=source.folder, commit=commit, sha256=sha256
    )


def _of_repository(place: SourcePlace) -> tuple[bytes, str]:
    source = place.source
    try:
        found = fetch_archive(
            place.url,
            source.ref,
            source.folder,
            seconds_max=SECONDS_MAX,
            bytes_max=UNPACKED_BYTES_MAX,
        )
    except GitMissing:
        raise SourceRefused(
            "a repository is fetched by git, which is not installed here; install it, or "
            "register an archive of the repository"
        ) from None
    except GitTooMuch as problem:
        raise SourceRefused(
            f"{source} cannot be fetched: {problem}; name a folder in it (#FOLDER), or "
            f"{_BY_HAND}"
        ) from None
    except GitProblem as problem:
        raise _explained(source, str(problem)) from None
    return found.content, found.commit


_SAID: tuple[tuple[str, str], ...] = (
    (r"couldn't find remote ref|not our ref|unadvertised object", "ref"),
    (r"could not resolve|failed to connect|connection (refused|timed out|reset)", "network"),
    (r"network is unreachable|no route to host|operation timed out|timed out after", "network"),
    (r"could not read (username|password)|authentication failed|permission denied", "rights"),
    (r"host key verification failed", "host"),
    (r"access denied|error: 40[13]", "rights"),
    (r"does not exist in|exists on disk, but not in|not a valid object name", "folder"),
    (r"dubious ownership", "owner"),
)


def _explained(source: WorkflowSource, said: str) -> Refused | Unavailable:
    """Returns what git said, as something that a person can act on."""
    kinds = [kind for pattern, kind in _SAID if re.search(pattern, said, re.IGNORECASE)]
    kind, where = (kinds or [""])[0], source.url
    if kind == "network":
        return _unreachable(where, said)
    match kind:
        case "ref":
            told = (
                f"{where} has no {source.ref or 'commit'!r}; write a branch, a tag, or a full "
                "commit id after @"
            )
        case "folder":
            told = f"{where} has no file or folder {source.folder!r}; {_LOOK}"
        case "rights":
            login = (
                "check that your ssh key may read it, or "
                if where.startswith("git+ssh:")
                else "this command logs in only by git+ssh://; "
            )
            told = f"{where} does not exist or refused access; {login}{_BY_HAND}"
        case "host":
            told = (
                f"ssh does not know the key of the host of {where}; connect to it once by ssh, "
                "and compare the key"
            )
        case "owner":
            told = (
                f"git refuses {where}, because it belongs to another user; copy the files (cp "
                "-r), and register the copy: tidewheel register FOLDER"
            )
        case _:
            told = f"{where} cannot be fetched: {said[:500]}; {_BY_HAND}"
    return SourceRefused(told)


_LOOK = "look for it there, and write its path from the top folder after #"


def _unreachable(where: str, said: str) -> SourceUnreachable:
    return SourceUnreachable(
        f"{where} could not be fetched: {said[:300]}; try again, or, if there is no network, "
        "bring the files here and register their folder"
    )


def _read(path: Path) -> bytes:
    with path.open("rb") as file:
        content = file.read(ARCHIVE_BYTES_MAX + 1)
    if len(content) > ARCHIVE_BYTES_MAX:
        raise _too_large(str(path))
    return content


def _too_large(what: str) -> SourceRefused:
    return SourceRefused(
        f"{what} has more than {ARCHIVE_BYTES_MAX} bytes; unpack it, and register the folder"
    )


def _download(url: str, source: WorkflowSource) -> bytes:
    """Returns what is at a URL; raises SourceUnreachable, or SourceRefused."""
    import http.client  # noqa: PLC0415 - for those who register from elsewhere
    import ssl  # noqa: PLC0415
    import urllib.error  # noqa: PLC0415

    where, until = source.url, time.monotonic() + SECONDS_MAX
    try:
        with _opened(url) as response:
            found = bytearray()
            while part := response.read1(_READ_BYTES):
                found += part
                if len(found) > ARCHIVE_BYTES_MAX:
                    raise _too_large(where)
                if time.monotonic() > until:
                    raise _unreachable(where, f"this took more than {SECONDS_MAX:.0f} seconds")
            if response.length:  # of what was promised, this is missing
                raise _unreachable(where, "the end of the file is missing")
            return bytes(found)
    except urllib.error.HTTPError as error:
        error.close()
        if error.code >= http.client.INTERNAL_SERVER_ERROR:
            raise _unreachable(where, f"{error.code} {error.reason}") from None
        raise SourceRefused(
            f"{where} answers with {error.code} {error.reason}; open it in a browser, and "
            f"if it needs a login, {_BY_HAND}"
        ) from None
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            raise SourceRefused(
                f"{where}: its certificate is not trusted here "
                f"({error.reason.verify_message}); set SSL_CERT_FILE to a file with your own "
                "certificate authority"
            ) from None
        raise _unreachable(where, str(error.reason)) from None
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(where, str(error) or type(error).__name__) from None


def _opened(url: str) -> HTTPResponse:
    """Opens a URL; whoever answers can lead to https alone, and from this machine to itself."""
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    class Redirects(urllib.request.HTTPRedirectHandler):
        max_redirections = REDIRECTS_MAX

        def redirect_request(
            self,
            req: Request,
            fp: IO[bytes],
            code: int,
            msg: str,
            headers: HTTPMessage,
            newurl: str,
        ) -> Request | None:
            there = urlsplit(newurl)
            is_kept = there.scheme == "http" == urlsplit(req.full_url).scheme
            if there.scheme != "https" and not (is_kept and there.hostname in _LOOPBACK):
                raise urllib.error.URLError("it redirects to an address that is not https")
            return super().redirect_request(req, fp, code, msg, headers, newurl)

    opener = urllib.request.OpenerDirector()
    for handler in (  # nothing that opens files, or ftp
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        Redirects(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    asked = urllib.request.Request(
        url, headers={"User-Agent": "tidewheel", "Accept-Encoding": "identity"}
    )
    response: HTTPResponse = opener.open(asked, timeout=SILENCE_SECONDS_MAX)
    return response


# Unpacking.


class _Unpacked(NamedTuple):
    """Says where a file is put, whether it may be executed, and whether it is a link."""

    path: str
    content: bytes | None  # None: a link, or something else that is no file
    executable: bool


def _unpacked(content: bytes, source: WorkflowSource, folder: Path) -> Path:
    """Puts the files of an archive into a folder; returns what is asked for there."""
    try:
        paths = [
            entry.path.rstrip("/")
            for entry, _ in archive_entries(content, UNPACKED_BYTES_MAX, ENTRIES_MAX)
        ]
        top, name = _asked(paths, source)
        found = list(_below(content, top))
    except BadArchive:
        raise SourceRefused(
            f"{source.url} is not a tar, tar.gz or zip, or is incomplete; {_BY_HAND}"
        ) from None
    except ArchiveTooLarge:
        raise SourceRefused(
            f"{source} is too large: at most {FILES_MAX} files and {FOLDER_BYTES_MAX} bytes "
            f"are accepted; name a folder in it (#FOLDER), or {_BY_HAND}"
        ) from None
    if wrong := path_findings(one.path for one in found):
        raise SourceRefused(f"{source}: {'; '.join(wrong[:3])}; nothing was registered")
    root = folder / _called(source, top)
    root.mkdir(mode=0o700)
    for one in found:
        _put(root / one.path, one)
    return root / name if name else root


def _asked(paths: Sequence[str], source: WorkflowSource) -> tuple[str, str]:
    """Returns the folder of an archive that is asked for, and the name of the one file in it
    that is meant; "" for all of them.

    Servers of repositories put everything into one folder: it need not be named.
    """
    tops = {path.partition("/")[0] for path in paths}
    lead = next(iter(tops)) if len(tops) == 1 else ""
    asked = source.folder
    if not asked:
        return (lead, "") if lead and lead not in _files(paths) else ("", "")
    for start in dict.fromkeys(("", lead)):
        place = f"{start}/{asked}" if start else asked
        if any(path.startswith(f"{place}/") for path in paths):
            return place, ""
        if place in paths:
            above, _, name = place.rpartition("/")
            return above, name
    raise SourceRefused(f"{source.url} has no file or folder {asked!r}; {_LOOK}")


def _files(paths: Sequence[str]) -> set[str]:
    """Returns those of these paths that have nothing below them."""
    folders = {str(above) for path in paths for above in PurePosixPath(path).parents}
    return set(paths) - folders


def _below(content: bytes, top: str) -> Iterator[_Unpacked]:
    """Yields what lies in a folder of an archive, with paths from there."""
    lead, total, number = f"{top}/" if top else "", 0, 0
    for entry, read in archive_entries(content, UNPACKED_BYTES_MAX, ENTRIES_MAX):
        path = entry.path.removeprefix(lead)
        if entry.is_folder or not entry.path.startswith(lead):
            continue
        if LEFT_OUT.intersection(path.split("/")) or path.partition("/")[0] in MADE_BY_RUNS:
            continue
        number, total = number + 1, total + max(0, entry.size)
        if total > FOLDER_BYTES_MAX or number > FILES_MAX:
            raise ArchiveTooLarge
        inside = None if entry.problem else read(entry.size + 1)
        if inside is not None and len(inside) != entry.size:
            raise BadArchive
        yield _Unpacked(path, inside, bool(entry.mode & stat.S_IXUSR))


def _put(path: Path, one: _Unpacked) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if one.content is None:
        path.symlink_to(_NOWHERE)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o700 if one.executable else 0o600), "wb") as file:
        file.write(one.content)


def _called(source: WorkflowSource, top: str) -> str:
    """Returns how a folder is called that was fetched: a flow.cylc in it is called so."""
    name = PurePosixPath(source.folder).name if source.folder and top else ""
    if not name or "." in name:
        last = PurePosixPath(urlsplit(source.url).path).name
        ends = (*ARCHIVES, ".git")
        name = next((last.removesuffix(end) for end in ends if last.endswith(end)), last)
    return re.sub(r"[^\w.+@%-]", "_", unquote(name)).strip(".") or "workflow"
