"""Workflows of the registry as they travel."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any

import msgspec

from tidewheel.core.operator.registry import Bundle
from tidewheel.server.errors import BadRequest
from tidewheel.server.wire.runs import FILES_MAX, Path, Point, Text
from tidewheel.server.wire.validation import In

BUNDLES_MAX = 1_000
Named = Annotated[str, msgspec.Meta(max_length=200)]
Parameters = dict[str, Any]


class BytesIn(In):
    """The content of a file that is no text."""

    base64: str


class BundleIn(In):
    """Definitions with the files that belong to them, by their paths."""

    files: Annotated[dict[Path, Text | BytesIn], msgspec.Meta(max_length=FILES_MAX)] = (
        msgspec.field(default_factory=dict)
    )
    executable: Annotated[tuple[Path, ...], msgspec.Meta(max_length=FILES_MAX)] = ()
    name: Named = ""  # of a flow.cylc; a SIP definition says it itself
    version: Named = ""
    file: Annotated[str, msgspec.Meta(max_length=1_000)] = ""  # only this definition
    folder: Annotated[str, msgspec.Meta(max_length=1_000)] = (
        ""  # that they lie in, for findings
    )
    folders: Annotated[tuple[Path, ...], msgspec.Meta(max_length=FILES_MAX)] = ()  # for advice


class RegisterIn(BundleIn):
    """One bundle, or several, of which all or none are registered."""

    bundles: Annotated[tuple[BundleIn, ...], msgspec.Meta(max_length=BUNDLES_MAX)] = ()


class RegisterQuery(In):
    """The name and version of an archive, which JSON says itself; `strict` rejects warnings."""

    name: Named = ""
    version: Named = ""
    strict: bool = False


class WorkflowsQuery(In):
    """All versions of one workflow, or of all."""

    name: Named = ""


class ParametersIn(In):
    """The parameters that a request would give; null: no request."""

    parameters: Parameters | None = None


class GraphIn(ParametersIn):
    """The points, as `tidewheel graph` takes them, and the parameters of a request."""

    start: Point = ""
    stop: Point = ""


def bundles_of(form: RegisterIn) -> list[Bundle]:
    """Returns the bundles to register."""
    if bool(form.files) == bool(form.bundles):
        raise BadRequest(["give either files, by their paths, or bundles of such files"])
    return [_bundle(one) for one in (form.bundles or (form,))]


def _bundle(form: BundleIn) -> Bundle:
    return Bundle(
        files={path: _content(path, given) for path, given in form.files.items()},
        executable=frozenset(form.executable) & form.files.keys(),
        name=form.name,
        version=form.version,
        file=form.file,
        folder=form.folder,
        folders=frozenset(form.folders),
    )


def _content(path: str, given: str | BytesIn) -> bytes:
    if isinstance(given, str):
        try:
            return given.encode()
        except UnicodeEncodeError:
            raise BadRequest([f"files: {path[:100]!r} is no Unicode text"]) from None
    try:
        return base64.b64decode(given.base64, validate=True)
    except (binascii.Error, ValueError):
        raise BadRequest([f"files: {path[:100]!r} is not base64"]) from None
