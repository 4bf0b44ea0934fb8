"""Jobs speak to their worker: for themselves alone, in order, and never too much."""

import asyncio
import json
import os
import shutil
import stat
from contextlib import asynccontextmanager
from functools import partial

import pytest

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports
from tidewheel.core.queue.submission import (
    MESSAGE_BYTES_MAX,
    MESSAGES_BYTES_MAX,
    MESSAGES_MAX,
)
from tidewheel.errors import PayloadTooLarge, Refused, Unavailable
from tidewheel.runners.messages.client import (
    SPOOL_NAME,
    Delivery,
    SpooledMessage,
    append,
    send_message,
)
from tidewheel.runners.messages.server import CONNECTIONS_MAX, MessageServer

TURNED_AWAY = 30


def spooled(directory):
    """What lies in the spool of a job."""
    lines = (directory / SPOOL_NAME).read_text().splitlines()
    return [SpooledMessage(*json.loads(line)) for line in lines if line]


class Speaker:
    """A job that may speak, seen from both sides."""

    def __init__(self, server, home, name="job"):
        self.directory = home / name
        self.secret = f"secret of {name}"
        self.reports = RecordedReports()
        self.directory.mkdir()
        server.expect(self.secret, self.directory, self.reports)

    async def says(self, text="", secret=None, **rest):
        return await asyncio.to_thread(
            send_message, self.directory, secret or self.secret, text=text, **rest
        )

    async def sends(self, *lines):
        """Raw lines on one connection, and the answers."""
        # The address of a socket has 107 bytes at most; a test's folder may have more.
        folder = os.open(self.directory, os.O_PATH)
        try:
            reader, writer = await asyncio.open_unix_connection(
                f"/proc/self/fd/{folder}/job.socket"
            )
        finally:
            os.close(folder)
        answers = []
        async with asyncio.timeout(DEADLINE_SECONDS):
            for line in lines:
                writer.write(line + b"\n")
                answer = await reader.readline()
                answers.append(json.loads(answer) if answer else None)
        writer.close()
        return answers


@asynccontextmanager
async def server_in(home):
    server = MessageServer(home)
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def play(home, scenario):
    async def on_stage():
        async with server_in(home) as server:
            await scenario(server, Speaker(server, home))

    asyncio.run(on_stage())


def request(**fields):
    standard = {"secret": "secret of job", "key": "its own", "text": "hello"}
    return json.dumps(standard | fields).encode()


def test_messages_outputs_and_progress_arrive(tmp_path):
    async def scenario(_server, speaker):
        assert await speaker.says("half way", progress=0.5) is Delivery.ACCEPTED
        assert await speaker.says("", output="ready") is Delivery.ACCEPTED
        assert await speaker.says(progress=1) is Delivery.ACCEPTED
        assert speaker.reports.messages == [("half way", None), ("", "ready")]
        assert speaker.reports.progresses == [0.5, 1.0]

    play(tmp_path, scenario)


def test_values_arrive_with_their_message_and_bad_ones_are_refused_at_once(tmp_path):
    async def scenario(_server, speaker):
        assert await speaker.says("", output="ready", values='{"n": 1}') is Delivery.ACCEPTED
        assert (speaker.reports.messages, speaker.reports.values) == (
            [("", "ready")],
            ['{"n": 1}'],
        )
        bad = [
            *("not json", "[1]", '{"n": NaN}', '{"n": "\\ud800"}'),
            '{"a": ' * 101 + "1" + "}" * 101,
            json.dumps({"n": "x" * 65_536}),
        ]
        for values in bad:
            with pytest.raises(Refused):
                await speaker.says("", output="ready", values=values)
        [answer] = await speaker.sends(request(key="k", values={"n": 1}))
        assert "string that holds a JSON object" in answer["refused"]
        assert speaker.reports.values == ['{"n": 1}']

    play(tmp_path, scenario)


def test_values_wait_in_the_spool_with_their_message(tmp_path):
    async def scenario(server, speaker):
        await server.stop()
        sent = await speaker.says("", output="ready", values='{"n": 1}')
        assert sent is Delivery.SPOOLED
        spool = speaker.directory / "job.messages"
        with spool.open("a") as file:  # of a job of an earlier version, and of a hostile one
            file.write(
                '["k1", "old", null]\n["k2", "x", null, 5]\n["k3", "x", null, "{}", 1]\n'
            )
        later = MessageServer(tmp_path / "later")
        await later.start()
        later.expect("another", speaker.directory, speaker.reports)
        assert speaker.reports.messages == [("", "ready"), ("old", None)]
        assert speaker.reports.values == ['{"n": 1}']
        await later.stop()

    play(tmp_path, scenario)


def test_a_secret_speaks_for_its_own_attempt_alone(tmp_path):
    async def scenario(server, speaker):
        other = Speaker(server, tmp_path, "other")
        await other.says("mine")
        with pytest.raises(Refused, match="has ended"):
            await speaker.says("forged", secret="secret of nobody")
        assert (speaker.reports.messages, other.reports.messages) == ([], [("mine", None)])

    play(tmp_path, scenario)


def test_a_secret_dies_with_its_attempt(tmp_path):
    async def scenario(server, speaker):
        await speaker.says("in time")
        server.forget(speaker.secret)
        with pytest.raises(Refused, match="has ended"):
            await speaker.says("too late")
        assert speaker.reports.messages == [("in time", None)]

    play(tmp_path, scenario)


def test_a_message_that_is_sent_twice_counts_once(tmp_path):
    async def scenario(_server, speaker):
        line = request(key="k")
        assert await speaker.sends(line, line) == [{"ok": True}] * 2
        assert speaker.reports.messages == [("hello", None)]
        assert len(spooled(speaker.directory)) == 1

    play(tmp_path, scenario)


def test_without_a_worker_a_message_waits_in_the_spool(tmp_path):
    async def scenario(server, speaker):
        await speaker.says("first")
        await server.stop()
        assert await speaker.says("second", output="ready") is Delivery.SPOOLED
        assert await speaker.says(progress=0.5) is Delivery.DROPPED
        texts = [(one.text, one.output) for one in spooled(speaker.directory)]
        assert texts == [("first", None), ("second", "ready")]
        # The worker was only slow: it finds the rest when the attempt ends.
        server.forget(speaker.secret)
        assert speaker.reports.messages == texts

    play(tmp_path, scenario)


def test_what_was_spooled_comes_before_what_is_said_next(tmp_path):
    async def scenario(_server, speaker):
        append(speaker.directory, SpooledMessage(key="k", text="spooled"))
        await speaker.says("said")
        assert speaker.reports.messages == [("spooled", None), ("said", None)]

    play(tmp_path, scenario)


def test_an_adopter_hears_everything_from_the_first_word(tmp_path):
    async def scenario(server, speaker):
        for number in range(3):
            await speaker.says(f"{number}")
        reports = RecordedReports()
        server.expect(speaker.secret, speaker.directory, reports)
        await speaker.says("3")
        assert [text for text, _ in reports.messages] == ["0", "1", "2", "3"]
        assert len(speaker.reports.messages) == 3

    play(tmp_path, scenario)


def test_a_lost_directory_keeps_no_message_from_the_worker(tmp_path):
    async def scenario(server, speaker):
        async def send_late():
            reader, writer = await asyncio.open_unix_connection(server.path)
            writer.write(request() + b"\n")
            answer = await reader.readline()
            writer.close()
            return json.loads(answer)

        for path in speaker.directory.iterdir():
            path.unlink()
        speaker.directory.rmdir()
        assert await send_late() == {"ok": True}
        assert speaker.reports.messages == [("hello", None)]

    play(tmp_path, scenario)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"[]",
        b"{}",
        b"[" * 30_000,
        b'{"secret": 7}',
        request(text=7),
        request(text=""),
        request(output=7),
        request(output=""),
        request(output="two\nlines"),
        request(progress=2),
        request(progress="much"),
        request(progress=True),
        request(key=None),
        request(key="k" * 100),
        request(secret="\ud800"),
        b'{"secret": "secret of job", "key": "k", "progress": NaN}',
        b"\xff\xfe",
    ],
)
def test_whatever_breaks_the_form_is_refused_and_the_next_line_is_heard(tmp_path, line):
    async def scenario(_server, speaker):
        refused, accepted = await speaker.sends(line, request())
        assert refused["refused"]
        assert accepted == {"ok": True}
        assert speaker.reports.messages == [("hello", None)]
        assert speaker.reports.progresses == []

    play(tmp_path, scenario)


def test_a_line_that_is_too_long_is_refused(tmp_path):
    async def scenario(_server, speaker):
        (answer,) = await speaker.sends(request(text="x" * 10 * MESSAGE_BYTES_MAX))
        assert str(MESSAGE_BYTES_MAX) in answer["refused"]
        assert speaker.reports.messages == []

    play(tmp_path, scenario)


def test_a_message_that_is_too_long_is_refused_and_the_job_is_told(tmp_path):
    async def scenario(_server, speaker):
        longest = "\0" * MESSAGE_BYTES_MAX  # as JSON it is six times as long
        refused, accepted = await speaker.sends(
            request(text=longest + "x"), request(text=longest, key="another")
        )
        assert f"at most {MESSAGE_BYTES_MAX} are accepted" in refused["refused"]
        assert accepted == {"ok": True}
        with pytest.raises(PayloadTooLarge):
            await speaker.says("é" * 6, text_bytes_max=11)
        assert len(speaker.reports.messages) == 1

    play(tmp_path, scenario)


def test_what_a_job_wrote_into_its_spool_is_cut_to_the_limit(tmp_path):
    async def scenario(server, speaker):
        append(speaker.directory, SpooledMessage(key="k", text="é" * MESSAGE_BYTES_MAX))
        server.forget(speaker.secret)
        assert speaker.reports.messages == [("é" * (MESSAGE_BYTES_MAX // 2), None)]

    play(tmp_path, scenario)


def test_what_no_database_can_keep_is_replaced(tmp_path):
    async def scenario(_server, speaker):
        await speaker.sends(request(text="a\0b \ud800"))
        assert speaker.reports.messages == [("a\ufffdb ?", None)]

    play(tmp_path, scenario)


def test_m6_the_messages_of_an_attempt_are_bounded_together(tmp_path):
    """M6: many long ones fill the store as well as very many do."""

    async def scenario(_server, speaker):
        text = "x" * MESSAGE_BYTES_MAX
        for number in range(MESSAGES_BYTES_MAX // MESSAGE_BYTES_MAX + 5):
            append(speaker.directory, SpooledMessage(key=f"{number}", text=text))
        await speaker.says("it takes the spool along")
        with pytest.raises(Refused, match="at most 16 MiB"):
            await speaker.says("too much")
        assert len(speaker.reports.messages) <= MESSAGES_BYTES_MAX // MESSAGE_BYTES_MAX + 1

    play(tmp_path, scenario)


def test_an_attempt_cannot_speak_without_end(tmp_path):
    async def scenario(_server, speaker):
        for number in range(MESSAGES_MAX + 5):
            append(speaker.directory, SpooledMessage(key=f"{number}", text="spam"))
        await speaker.says("it takes the spool along")
        with pytest.raises(Refused, match=str(MESSAGES_MAX)):
            await speaker.says("too much")
        assert len(speaker.reports.messages) == MESSAGES_MAX

    play(tmp_path, scenario)


def test_connections_are_limited(tmp_path):
    async def scenario(server, _speaker):
        connect = partial(asyncio.open_unix_connection, server.path)
        idle = [await connect() for _ in range(CONNECTIONS_MAX)]
        reader, writer = await connect()
        async with asyncio.timeout(DEADLINE_SECONDS):
            answer = json.loads(await reader.readline())
        assert "connections" in answer["refused"]
        for _, held in [*idle, (reader, writer)]:
            held.close()
            await held.wait_closed()

    play(tmp_path, scenario)


# The second is longer than a socket holds: it is turned away before it has said all of it.
@pytest.mark.parametrize("text", ["the file is there", "\x01" * MESSAGE_BYTES_MAX])
def test_a_job_that_finds_too_many_others_speaking_says_it_again(tmp_path, text):
    async def scenario(server, speaker):
        connect = partial(asyncio.open_unix_connection, server.path)
        idle = [await connect() for _ in range(CONNECTIONS_MAX)]
        saying = asyncio.create_task(speaker.says(text))
        for _ in range(TURNED_AWAY):  # among them the job, once or more often
            reader, writer = await connect()
            await reader.readline()
            writer.close()
        for _, held in idle:
            held.close()
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await saying is Delivery.ACCEPTED
        assert [said for said, _ in speaker.reports.messages] == [text]

    play(tmp_path, scenario)


def test_nobody_else_can_reach_the_socket(tmp_path):
    async def scenario(_server, _speaker):
        assert stat.S_IMODE((tmp_path / "sock").stat().st_mode) == 0o700

    play(tmp_path, scenario)


def test_two_workers_of_one_process_have_a_socket_each(tmp_path):
    async def scenario(_server, speaker):
        async with server_in(tmp_path) as second:
            other = Speaker(second, tmp_path, "other")
            await other.says("to the second")
            await speaker.says("to the first")
            assert other.reports.messages == [("to the second", None)]
            assert speaker.reports.messages == [("to the first", None)]

    play(tmp_path, scenario)
    assert list((tmp_path / "sock").iterdir()) == []


def test_a_torn_line_in_the_spool_takes_no_other_line_along(tmp_path):
    async def scenario(server, speaker):
        append(speaker.directory, SpooledMessage(key="1", text="one"))
        with open(speaker.directory / SPOOL_NAME, "ab") as spool:
            spool.write(b'["2", "to')
        append(speaker.directory, SpooledMessage(key="3", text="three"))
        with open(speaker.directory / SPOOL_NAME, "ab") as spool:
            spool.write(b'[7, 8, 9]\n["4", "not yet')
        server.hear_spool(speaker.secret)
        assert speaker.reports.messages == [("one", None), ("three", None)]

    play(tmp_path, scenario)


@pytest.mark.parametrize("kind", ["folder", "pipe", "link"])
def test_a_spool_that_is_no_file_says_nothing_and_stops_nobody(tmp_path, kind):
    async def scenario(server, speaker):
        spool = speaker.directory / SPOOL_NAME
        if kind == "folder":
            spool.mkdir()
        elif kind == "pipe":
            os.mkfifo(spool)
        else:
            spool.symlink_to("/dev/zero")
        server.forget(speaker.secret)
        assert speaker.reports.messages == []

    play(tmp_path, scenario)


def test_a_line_in_the_spool_that_is_nested_without_end_takes_no_other_line_along(tmp_path):
    async def scenario(server, speaker):
        (speaker.directory / SPOOL_NAME).write_bytes(b"[" * 200_000 + b"\n")
        append(speaker.directory, SpooledMessage(key="1", text="one"))
        server.forget(speaker.secret)
        assert speaker.reports.messages == [("one", None)]

    play(tmp_path, scenario)


def test_a_message_that_nobody_can_keep_is_not_lost_in_silence(tmp_path):
    with pytest.raises(Unavailable, match="no worker answers"):
        send_message(tmp_path / "gone", "secret", text="hello")


def test_a_job_without_a_directory_has_said_nothing(tmp_path):
    async def scenario(server, speaker):
        shutil.rmtree(speaker.directory)
        server.forget(speaker.secret)
        assert speaker.reports.messages == []

    play(tmp_path, scenario)
