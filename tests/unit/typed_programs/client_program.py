"""Clients, handlers and workers as a user writes them: what type checkers know and find."""

from typing import Any, reveal_type

from tidewheel import Abort, AsyncClient, Client, Handlers, JobContext, Worker

handlers = Handlers()


@handlers.register("resize")
def resize(spec: dict[str, Any], job: JobContext) -> dict[str, int]:
    job.message(f"width {spec['width']}")
    job.progress(0.5)
    if job.should_stop():
        raise Abort("no more time")
    return {"pixels": 640 * 480}


@handlers.register("tell")
async def tell(spec: dict[str, Any], job: JobContext) -> None:
    print(spec, job.attempt)


@handlers.register
def crop(spec: dict[str, Any], job: JobContext) -> None:
    job.message(spec["width"])


reveal_type(crop)  # is (spec: dict[str, Any], job: JobContext) -> None

resize({}, None)  # mistake: there is always a job
reveal_type(resize)  # is (spec: dict[str, Any], job: JobContext) -> dict[str, int]

with Client() as client:
    task = client.submit("default", command="echo", retries=3, needs=["a"], timeout="1m")
    reveal_type(task)  # is Submitted
    reveal_type(task.id)  # is TaskId
    reveal_type(client.get("a").status)  # is Status
    [ended] = client.wait(task.id)
    [leased] = client.lease("images", n=1)
    client.heartbeat(leased, progress=0.5)
    client.submit("default", comand="echo")  # mistake: the field is called command
    client.submit("default", retries={"a": 1})  # mistake: neither a count nor delays
    client.cancle("a")  # mistake: it is called cancel
    client.submit(3)  # mistake: a queue is a text


async def ask() -> None:
    async with AsyncClient() as client:
        task = await client.submit("default", command="echo")
        reveal_type(task)  # is Submitted
        print(client.submit("default", command="echo").id)  # mistake: it is to be awaited


Worker("default", handlers=handlers)
Worker("default", handler=handlers)  # mistake: it is called handlers
