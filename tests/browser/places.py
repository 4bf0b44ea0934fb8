"""Addresses of the page."""

from urllib.parse import quote


def address(site, run, query=""):
    """The page of a run."""
    return f"{site.url}/runs/{quote(run, safe='')}{query}"
