"""What engines say, in words that tell somebody what to do."""

from __future__ import annotations

import math
from collections.abc import Collection

GRACE_SECONDS_MAX = 86_400
_IMAGE_WORDS = (
    "pull access denied",
    "manifest unknown",
    "manifest for",
    "no such image",
    "registry",
    "/v2/",
    "image not found",
)


# What docker-compose says besides, whatever happens; it has nothing to do with a failure.
_CHATTER = (
    "Creating ",
    "Pulling ",
    "The Docker Engine you're using is running in swarm mode",
    "Compose does not use swarm mode",
    "To deploy your application across the swarm",
)


_TRACE = "Traceback (most recent call last):"  # of docker-compose's own inside


def without_chatter(text: str) -> str:
    """The lines that say why something failed; all of them, if there is no other."""
    lines = text.partition(_TRACE)[0].splitlines()
    telling = [one for one in lines if not one.strip().startswith(_CHATTER)]
    return "\n".join(telling) if any(one.strip() for one in telling) else text


def is_about_an_image(words: str) -> bool:
    """Whether an image is missing and could not be fetched."""
    lower = words.lower()
    return any(one in lower for one in _IMAGE_WORDS)


def create_words(words: str, images: Collection[str] = ()) -> str:
    """Why a project with these images could not be made."""
    if is_about_an_image(words):
        if images and not any(name in words for name in images):
            words = f"{', '.join(images)}: {words}"
        return (
            f"an image is not here and could not be fetched: {words}; check its name, or load "
            "it on the machine (docker load, docker pull)"
        )
    return f"the engine did not accept the stage: {words}"


def whole_seconds(grace_seconds: float) -> int:
    """A grace as docker takes it."""
    return min(max(0, math.ceil(grace_seconds)), GRACE_SECONDS_MAX)
