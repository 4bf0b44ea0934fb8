"""Options of `server` and `up`: where a server listens, and how much it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict, TypeVar

import click

if TYPE_CHECKING:
    from tidewheel.config import ServerSettings

Function = TypeVar("Function", bound=Callable[..., object])
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


class ListeningOptions(TypedDict):
    """The address to listen on, trusted proxies, and how fast tasks may come."""

    host: str
    port: int
    certificate: Path | None
    key: Path | None
    behind_proxy: tuple[str, ...]
    allow_host: tuple[str, ...]
    submit_rate: float | None
    address_connections: int


def listening_options(function: Function) -> Function:
    """The options, in the order of --help."""
    options = (
        click.option(
            "--host", default="127.0.0.1", show_default=True, help="The address to listen on."
        ),
        click.option(
            "--port", type=int, default=8450, show_default=True, help="0 takes any free port."
        ),
        click.option("--certificate", type=FILE, help="The certificate, for TLS; with --key."),
        click.option("--key", type=FILE, help="Its private key; with --certificate."),
        click.option(
            "--behind-proxy",
            metavar="ADDRESS",
            multiple=True,
            help="A proxy that speaks TLS to the world; its X-Forwarded headers are trusted.",
        ),
        click.option(
            "--allow-host",
            metavar="NAME",
            multiple=True,
            help="A host name under which it is reached; repeatable.",
        ),
        click.option(
            "--submit-rate",
            type=float,
            metavar="N",
            help="Accept N tasks per second for each queue; more get 429. [default: no limit]",
        ),
        click.option(
            "--address-connections",
            type=click.IntRange(min=1),
            metavar="N",
            default=1_000,
            show_default=True,
            help="How many connections one address may have that is no proxy.",
        ),
    )
    for option in reversed(options):
        function = option(function)
    return function


def server_settings(options: ListeningOptions) -> ServerSettings:
    """Returns the settings that the options mean."""
    from tidewheel.config import ServerSettings, home_directory

    return ServerSettings(
        host=options["host"],
        port=options["port"],
        hosts=options["allow_host"],
        certificate=options["certificate"],
        key=options["key"],
        proxies=options["behind_proxy"],
        submit_rate=options["submit_rate"],
        connections_per_address_max=options["address_connections"],
        home=home_directory(),
    )
