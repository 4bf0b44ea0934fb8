"""The least that the same libraries can do: a route that answers, and one that checks a body.

``python -m bench.requests.bare PORT``: no authentication, no limits, no store.
"""

from __future__ import annotations

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

JSON = "application/json"
ANSWER = msgspec.json.encode(
    {"id": "bench-1", "queue": "bench", "status": "ready", "spec": {"n": 1}, "text": "x" * 400}
)


class Body(msgspec.Struct, forbid_unknown_fields=True):
    """As large as a small task."""

    id: str
    queue: str
    handler: str
    spec: dict[str, int]


async def answer(_: Request) -> Response:
    return Response(ANSWER, media_type=JSON)


async def check(request: Request) -> Response:
    body = msgspec.json.decode(await request.body(), type=Body)
    return Response(msgspec.json.encode({"id": body.id}), status_code=201, media_type=JSON)


APP = Starlette(
    routes=[Route("/answer", answer), Route("/check", check, methods=["POST"])],
)

if __name__ == "__main__":
    uvicorn.run(
        APP,
        port=int(sys.argv[1]),
        http="httptools",
        loop="uvloop",
        access_log=False,
        log_level="warning",
    )
