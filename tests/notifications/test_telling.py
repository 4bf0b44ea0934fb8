"""Telling people what happens: at least once, under one id, whoever dies meanwhile."""

import asyncio
import base64
import hashlib
import hmac
import json
import signal
import socket
import threading
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from tests.kit.faulty_store import FaultyStore
from tests.support.http_server import Caller
from tests.support.mail_server import mail_server
from tests.support.patience import eventually
from tests.support.prepared_run import PreparedRun
from tests.support.receiver import Receiver, receiver
from tests.support.scripted_server import SILENCE, scripted
from tests.support.site import make_certificate
from tidewheel.config import RULES_FILE
from tidewheel.failpoints import NOTIFYING
from tidewheel.services.notifications.delivery import (
    DeliveryMeans,
    NotPosted,
    Posted,
    deliver,
    is_allowed,
    post,
)
from tidewheel.services.notifications.messages import trial_message
from tidewheel.services.notifications.notifier import (
    NotifierService,
    NotifierSettings,
)
from tidewheel.services.notifications.rules import Webhook, load_rules
from tidewheel.services.service import Backoff, Surroundings, SystemClock
from tidewheel.wiring.machine import is_process_alive, this_process
from tidewheel.wiring.stores import opened_store

ALONE = """
[scheduling]
    cycling mode = integer
    initial cycle point = 1
    final cycle point = 1
    [[graph]]
        P1 = a => b
[runtime]
    [[a, b]]
"""
TIMED = """
[scheduling]
    initial cycle point = 20200101T00Z
    final cycle point = 20200102T00Z
    [[graph]]
        P1D = a => b
[runtime]
    [[a]]
    [[b]]
        [[[events]]]
            late offset = PT1H
"""
AT_ONCE = Backoff(first_seconds=0.0, seconds_max=0.0)
SOON = Backoff(first_seconds=0.001, seconds_max=0.001)
EVERYTHING = '["stall", "blocked", "failed", "late", "error", "stopped", "completed"]'


class Teller:
    """Notifiers of one store, one after the other; each begins with what the last one left."""

    def __init__(self, tidewheel, smtp="localhost:9"):
        self._tidewheel, self._smtp = tidewheel, smtp
        self.reports = []
        tidewheel.state.mkdir(parents=True, exist_ok=True, mode=0o700)

    def rules(self, text):
        path = self._tidewheel.state / RULES_FILE
        path.write_text(text)
        path.chmod(0o600)
        return self

    def passes(self, fault=None, **settings):
        """A notifier comes, does what there is to do, and goes."""
        self.reports.clear()
        asyncio.run(self._pass(fault, settings))
        return self

    async def _pass(self, fault, settings):
        home = self._tidewheel.state
        means = DeliveryMeans(
            directory=home, smtp=self._smtp, environment={"PATH": "/usr/bin:/bin"}
        )
        given = NotifierSettings(
            rules=home / RULES_FILE,
            home=home,
            process=this_process(),
            is_alive=is_process_alive,
            means=means,
            **({"retry": AT_ONCE} | settings),
        )
        clock = SystemClock()
        around = Surroundings(clock=clock, on_report=self.reports.append, backoff=SOON)
        async with opened_store(self._tidewheel.store) as store:
            way = FaultyStore(store, clock)
            notifier = NotifierService(way.as_store(), given, around)
            if fault is not None:
                fault(way)
                await notifier.persist(notifier.begin)
            await notifier.finish()

    def on_store(self, question):
        async def ask():
            async with opened_store(self._tidewheel.store) as store:
                return await question(store)

        return asyncio.run(ask())

    @property
    def told(self):
        return [report.event for report in self.reports]


@pytest.fixture
def teller(tidewheel):
    return Teller(tidewheel)


@pytest.fixture
def hook():
    with receiver() as found:
        yield found


def to(hook, on=EVERYTHING, more=""):
    return f'[[rule]]\nname = "hook"\non = {on}\n{more}\nto = {{ webhook = "{hook.url}" }}\n'


@contextmanager
def mail_in_a_thread():
    """The server of the mail tests, while the notifier has a loop of its own."""
    ready, over = threading.Event(), threading.Event()
    found = []

    async def serve():
        async with mail_server() as server:
            found.append(server)
            ready.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield found[0]
    finally:
        over.set()
        thread.join()


# ---- what is told ----


def test_a_failure_and_the_stall_that_follows_are_told_with_what_keeps_the_run(
    tidewheel, teller, hook
):
    teller.rules(to(hook)).passes()
    run = PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    [failed], [stall] = hook.of("failed"), hook.of("stall")
    assert (failed["run"], failed["workflow"]) == (run.name, "forecast")
    assert (failed["tasks"], failed["count"]) == (["1/a"], 1)
    assert failed["text"] == f"{run.name}: 1 task failed: 1/a"
    assert stall["tasks"] == ["1/a"]
    assert "1/a failed and is incomplete" in stall["reason"]
    assert stall["status"] == "stalled"


def test_a_blocked_subgraph_is_told_once_and_again_when_it_is_blocked_anew(
    tidewheel, teller, hook
):
    teller.rules(to(hook, '["blocked"]')).passes()
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    teller.passes()
    [blocked] = hook.of("blocked")
    assert blocked["tasks"] == ["2/prep"]
    run.starts_job("1/model_b")
    teller.passes()
    assert len(hook.posts) == 1


def test_the_end_of_a_run_is_told(tidewheel, teller, hook):
    teller.rules(to(hook, '["completed"]')).passes()
    run = PreparedRun(tidewheel, ALONE).starts().succeeds("1/a")
    teller.passes()
    assert hook.posts == []
    run.succeeds("1/b")
    teller.passes().passes()
    [end] = hook.of("completed")
    assert end["text"] == f"{run.name} is completed"


def test_what_is_late_by_the_definition_or_by_the_rule_is_told_once(tidewheel, teller, hook):
    offset = to(hook, '["late"]')
    after = offset.replace('"hook"', '"after"') + "after = 3600\n"
    now = offset.replace('"hook"', '"now"') + 'after = 0\ntask = "a"\n'
    teller.rules(offset + after + now).passes()
    PreparedRun(tidewheel, TIMED).starts().succeeds("20200101T0000Z/a")
    teller.passes().passes()
    late = {one["rule"]: one["tasks"] for one in hook.of("late")}
    # The point is years ago, which counts for the definition; the rule counts from the start.
    assert late == {"hook": ["20200101T0000Z/b"], "now": ["20200102T0000Z/a"]}
    assert len(hook.posts) == 2


def test_rules_choose_by_event_workflow_and_task(tidewheel, teller, hook):
    teller.rules(
        to(hook, '["failed"]', 'workflow = "fore*"\ntask = "b"')
        + to(hook, '["failed"]', 'workflow = "other"').replace('"hook"', '"other"')
    ).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    PreparedRun(tidewheel, ALONE).starts().succeeds("1/a").fails("1/b")
    teller.passes()
    assert [(one["rule"], one["tasks"]) for one in hook.of("failed")] == [("hook", ["1/b"])]


def test_what_happened_before_anybody_asked_is_not_told(tidewheel, teller, hook):
    run = PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.rules(to(hook)).passes()
    run.happens()
    teller.passes()
    assert hook.posts == []


def test_what_happens_while_nobody_sends_is_told_by_the_next_who_does(tidewheel, teller, hook):
    teller.rules(to(hook, '["failed", "completed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    PreparedRun(tidewheel, ALONE).starts().succeeds("1/a").succeeds("1/b")
    teller.passes()
    assert sorted(hook.events) == ["completed", "failed"]


def test_failures_that_come_together_are_one_message(tidewheel, teller, hook):
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a", "1/model_b")
    teller.passes()
    [failed] = hook.of("failed")
    assert (failed["tasks"], failed["count"]) == (["1/model_a", "1/model_b"], 2)


def test_no_more_than_one_message_comes_within_the_time_that_a_rule_names(
    tidewheel, teller, hook
):
    teller.rules(to(hook, '["failed"]', 'every = "PT1H"')).passes()
    run = PreparedRun(tidewheel).starts().succeeds("1/prep").fails("1/model_a")
    teller.passes()
    run.fails("1/model_b")
    teller.passes()
    assert len(hook.posts) == 1
    waiting = tidewheel("notify", "list", "--json").json["waiting"]
    assert [one["event"] for one in waiting] == ["failed"]


# ---- at least once ----


def test_a_receiver_that_is_down_gets_the_same_message_when_it_is_back(
    tidewheel, teller, own_port
):
    hook = Receiver(own_port)
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    [waiting] = tidewheel("notify", "list", "--json").json["waiting"]
    assert waiting["tries"] > 0
    assert "cannot be reached" in waiting["error"]
    with hook.listening():
        teller.passes()
        teller.passes()
    [post] = hook.posts
    assert post.json["id"] == waiting["id"] == post.headers["webhook-id"]
    [ended] = tidewheel("notify", "list", "--json").json["ended"]
    assert ended["outcome"] == "sent"


def test_a_refusal_is_tried_again_and_at_last_given_up(tidewheel, teller, hook):
    hook.answers += [(500, {})] * 3
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes(tries_max=3)
    assert len({post.json["id"] for post in hook.posts}) == 1
    assert len(hook.posts) == 3
    assert teller.told.count("notification.failed") == 2
    assert "notification.given_up" in teller.told
    [ended] = tidewheel("notify", "list", "--json").json["ended"]
    assert (ended["outcome"], ended["tries"]) == ("given up", 3)
    assert "500" in ended["error"]


def test_only_who_holds_the_notebook_sends(tidewheel, teller, hook):
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    other = teller.on_store(lambda store: store.claim_notebook("notifier", "another", 600.0))
    teller.passes()
    assert hook.posts == []
    teller.on_store(lambda store: store.leave_notebook("notifier", other.epoch))
    teller.passes()
    assert hook.events == ["failed"]


ASKED = (
    *("claim_notebook", "write_notebook", "events_head", "events_after", "now"),
    *("find_run", "read_run", "run", "definition"),
)


@pytest.mark.parametrize("operation", ASKED)
@pytest.mark.parametrize("lost", ["loses_requests", "loses_answers"])
def test_whatever_the_store_does_not_answer_is_asked_again_and_nothing_is_left_out(
    tidewheel, teller, hook, operation, lost
):
    teller.rules(to(hook, '["failed", "stall"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes(lambda way: getattr(way, lost)(operation))
    assert "store.unavailable" in teller.told
    assert sorted(hook.events) == ["failed", "stall"]
    assert hook.of("stall")[0]["tasks"] == ["1/a"]


@pytest.mark.parametrize("operation", ["claim_notebook", "events_head", "runs", "now"])
def test_the_first_of_all_begins_again_until_it_knows_where(tidewheel, teller, hook, operation):
    teller.rules(to(hook, '["failed"]')).passes(lambda way: way.loses_answers(operation))
    assert "store.unavailable" in teller.told
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    assert hook.events == ["failed"]


def test_what_cannot_be_told_stops_nobody(tidewheel, teller, hook):
    """A bug of ours about one event: it is reported, and what comes next is told."""
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes(lambda way: way.breaks("definition", AssertionError("a bug")))
    assert "event.untold" in teller.told
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    assert [one["run"] for one in hook.of("failed")] == ["forecast/run2"]


def test_one_who_lost_its_place_in_the_past_says_so_and_goes_on(tidewheel, teller, hook):
    teller.rules(to(hook, '["failed"]')).passes()

    async def forge(store):
        held = await store.claim_notebook("notifier", "x", 60.0)
        diary = json.loads(held.body) | {"cursor": "zzzzzzzz-1-1"}
        await store.write_notebook("notifier", held.epoch, json.dumps(diary), 60.0)
        await store.leave_notebook("notifier", held.epoch)

    teller.on_store(forge)
    teller.passes()
    assert "events.lost" in teller.told
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    assert teller.passes() and hook.events == ["failed"]


@pytest.mark.parametrize("place", NOTIFYING)
def test_whoever_dies_while_sending_is_followed_by_one_who_sends_under_the_same_id(
    tidewheel, teller, hook, place
):
    """Killed with the message in the store only, or sent and not written down."""
    teller.rules(to(hook, '["failed"]')).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    with tidewheel.started("scheduler", "--json", TIDEWHEEL_FAILPOINT=place) as dying:
        assert dying.wait().status == -signal.SIGKILL
    assert len(hook.posts) == (1 if place == "notification_sent" else 0)
    with tidewheel.started("scheduler", "--json") as following:
        following.read_until("notification.sent")
        following.send(signal.SIGTERM)
        assert following.wait().status == 0
    assert len({post.json["id"] for post in hook.posts}) == 1
    assert len(hook.posts) == (2 if place == "notification_sent" else 1)


def test_rules_that_change_are_read_again_and_broken_ones_leave_the_old_in_force(
    tidewheel, teller, hook
):
    teller.rules(to(hook, '["completed"]'))
    with tidewheel.started("scheduler", "--json") as scheduler:
        scheduler.read_until("notebook.taken")
        teller.rules("[[rule")
        assert "not valid TOML" in scheduler.read_until("rules.read")
        teller.rules(to(hook, '["failed"]'))
        scheduler.read_until('"count": 1')
        PreparedRun(tidewheel, ALONE).starts().fails("1/a")
        scheduler.read_until("notification.sent")
    assert hook.events == ["failed"]


def test_a_run_of_one_process_tells_its_end_before_it_leaves(tidewheel, teller, hook):
    teller.rules(to(hook, '["completed"]'))
    (tidewheel.folder / "flow.cylc").write_text(
        "[scheduling]\n  [[graph]]\n    R1 = a\n[runtime]\n  [[a]]\n    script = true\n"
    )
    assert tidewheel("run", ".").status == 0
    assert hook.events == ["completed"]


def test_a_run_of_one_process_ends_as_it_would_though_nobody_hears(tidewheel, teller, own_port):
    hook = Receiver(own_port)
    teller.rules(to(hook, '["completed"]'))
    (tidewheel.folder / "flow.cylc").write_text(
        "[scheduling]\n  [[graph]]\n    R1 = a\n[runtime]\n  [[a]]\n    script = true\n"
    )
    answer = tidewheel("run", ".")
    assert answer.status == 0
    assert "notification hook (completed) was not sent" in answer.out
    assert len(tidewheel("notify", "list", "--json").json["waiting"]) == 1


# ---- webhooks ----


def test_a_signed_message_can_be_checked_by_whoever_knows_the_secret(tidewheel, teller, hook):
    key = base64.b64encode(b"a key of some length").decode()
    teller.rules(
        f'[[rule]]\non = ["failed"]\n[rule.to]\nwebhook = "{hook.url}?x=1"\n'
        f'secret = "whsec_{key}"\nheaders = {{ Authorization = "Bearer abc" }}\n'
    ).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    [sent] = hook.posts
    signed = f"{sent.headers['webhook-id']}.{sent.headers['webhook-timestamp']}.".encode()
    digest = hmac.new(b"a key of some length", signed + sent.body, hashlib.sha256).digest()
    assert sent.headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()
    assert sent.headers["authorization"] == "Bearer abc"
    assert (sent.path, sent.headers["tidewheel-event"]) == ("/hook?x=1", "failed")
    assert b"whsec" not in sent.body


def test_a_message_that_comes_late_is_signed_with_the_time_at_which_it_is_sent(hook, tmp_path):
    """Standard Webhooks: receivers refuse old timestamps, which might be replays."""
    (tmp_path / RULES_FILE).write_text(to(hook, '["failed"]'))
    [rule] = load_rules(tmp_path / RULES_FILE).rules
    happened, sent_at = 1e9, 1e9 + 3_600
    message = trial_message(rule, happened, "store", "id")
    means = DeliveryMeans(directory=tmp_path, smtp="")
    assert asyncio.run(deliver(rule, message, 0, means, sent_at)) == ""
    [sent] = hook.posts
    assert sent.headers["webhook-timestamp"] == "1000003600"
    assert sent.json["at"].startswith("2001-09-09T01:46:40")


WHAT = Posted("id", "failed", 1, b"{}")


def test_a_redirect_is_followed_within_the_same_host_only(hook):
    """S21."""
    hook.answers.append((307, {"Location": "/other"}))
    post(Webhook(url=hook.url), WHAT)
    assert [one.path for one in hook.posts] == ["/hook", "/other"]
    with receiver() as other:
        hook.answers.append((307, {"Location": other.url}))
        with pytest.raises(NotPosted, match=f"127.0.0.1:{other.port}"):
            post(Webhook(url=hook.url), WHAT)
        assert other.posts == []
    hook.answers.append((302, {"Location": "/other"}))
    with pytest.raises(NotPosted, match="302"):
        post(Webhook(url=hook.url), WHAT)
    hook.answers += [(308, {"Location": "/hook"})] * 10
    with pytest.raises(NotPosted, match="more than 3 times"):
        post(Webhook(url=hook.url), WHAT)


@pytest.mark.parametrize(
    "address",
    [
        *("169.254.169.254", "169.254.1.1", "fe80::1%eth0", "fd00:ec2::254", "0.0.0.0"),
        *("::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "100.100.100.200", "224.0.0.1", "::"),
    ],
)
def test_addresses_where_machines_keep_secrets_are_refused(address):
    """S21."""
    assert not is_allowed(address)


@pytest.mark.parametrize("address", ["127.0.0.1", "10.0.0.7", "192.168.1.1", "::1", "8.8.8.8"])
def test_any_other_address_is_allowed(address):
    assert is_allowed(address)


def test_a_rule_that_points_to_a_link_local_address_is_told_how_to_mean_it():
    with pytest.raises(NotPosted, match="anywhere = true"):
        post(Webhook(url="http://169.254.169.254/latest/meta-data"), WHAT)


def test_a_certificate_is_believed_only_if_its_authority_is(tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    make_certificate(certificate, key, "127.0.0.1")
    with Receiver(certificate=(certificate, key)).listening() as hook:
        with pytest.raises(OSError, match="self-signed"):
            post(Webhook(url=hook.url), WHAT)
        post(Webhook(url=hook.url, ca=str(certificate)), WHAT)
        assert len(hook.posts) == 1
        elsewhere = hook.url.replace("127.0.0.1", "localhost")
        with pytest.raises(OSError, match="mismatch"):
            post(Webhook(url=elsewhere, ca=str(certificate)), WHAT)


def test_no_secret_of_a_rule_is_in_the_store_or_in_what_is_said(tidewheel, teller, hook):
    """S23: a canary in the signature's key, a header and the path."""
    hook.answers += [(500, {})] * 2
    url = hook.url + "/canary-path"
    teller.rules(
        f'[[rule]]\non = ["failed"]\n[rule.to]\nwebhook = "{url}"\nsecret = "canary-key"\n'
        'headers = { Authorization = "canary-header" }\n'
    ).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes(tries_max=2)
    assert len(hook.posts) == 2
    said = tidewheel("notify", "list", "--json").out + repr(teller.reports)
    assert "500" in said
    written = b"".join(path.read_bytes() for path in tidewheel.state.glob("tidewheel.db*"))
    assert "canary" not in said
    assert b"canary" not in written


def test_a_receiver_that_says_nothing_keeps_nobody_for_longer_than_the_time():
    with scripted(SILENCE) as (url, _), pytest.raises((NotPosted, OSError)):
        post(Webhook(url=url), WHAT, 0.3)


def test_a_receiver_that_drips_keeps_nobody_for_longer_than_the_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        over = threading.Event()

        def drip():
            with suppress(OSError), listener.accept()[0] as line:
                while not over.wait(0.02):
                    line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

        thread = threading.Thread(target=drip)
        thread.start()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        with pytest.raises((NotPosted, OSError)):
            post(Webhook(url=url), WHAT, 0.5)
        over.set()
        with suppress(OSError):  # a post that gave up before it connected was never accepted
            listener.shutdown(socket.SHUT_RDWR)
        thread.join()


# ---- mail and commands ----


def test_a_mail_says_what_happened_under_an_id_that_mail_programs_know(tidewheel):
    with mail_in_a_thread() as server:
        teller = Teller(tidewheel, server.address)
        teller.rules(
            '[[rule]]\non = ["failed"]\nsubject = "{event} in {workflow}"\n'
            'text = "see {tasks}"\n'
            'to = { mail = ["a@example.org", "b@example.org"], from = "wheel@example.org" }\n'
        ).passes()
        PreparedRun(tidewheel, ALONE).starts().fails("1/a")
        teller.passes()
        [mail] = server.mails
    assert (mail["Subject"], mail["From"]) == ("failed in forecast", "wheel@example.org")
    assert server.recipients == ["<a@example.org>", "<b@example.org>"]
    assert mail.get_content().split()[:3] == ["see", "1/a", "event:"]
    [ended] = tidewheel("notify", "list", "--json").json["ended"]
    assert mail["Message-ID"].startswith(f"<{ended['id']}@")


def test_a_mail_server_that_is_away_is_asked_again(tidewheel, teller):
    rule = '[[rule]]\non = ["failed"]\nto = { mail = "a@example.org" }\n'
    teller.rules(rule).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    assert "notification.failed" in teller.told
    with mail_in_a_thread() as server:
        Teller(tidewheel, server.address).passes()
        assert len(server.mails) == 1


def test_a_program_gets_fields_as_arguments_and_no_shell_reads_them(tidewheel, teller):
    """S20."""
    hostile = "$(touch hacked); touch hacked; '\"`touch hacked`"
    out = tidewheel.folder / "out"
    words = json.dumps(["cp", "/dev/null", f"{out}-{{event}}"])
    shell = f"printf '%s' \"$TIDEWHEEL_NOTIFY_MESSAGE\" > {out}; printf '%s' {{event}} > {out}2"
    say = json.dumps(["sh", "-c", f'printf "%s" "$1" > {out}3', "sh", "{text}"])
    rules = [
        f'[[rule]]\non = ["failed"]\ntext = {json.dumps(hostile)}\nto = {{ command = {one} }}\n'
        for one in (words, json.dumps(shell), say)
    ]
    teller.rules("".join(rules)).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    assert teller.told.count("notification.sent") == 3
    assert (tidewheel.folder / "out-failed").exists()
    assert json.loads(out.read_text())["tasks"] == ["1/a"]
    assert (tidewheel.folder / "out2").read_text() == "{event}"  # bash's line is left alone
    assert (tidewheel.folder / "out3").read_text() == hostile
    assert not list(tidewheel.folder.rglob("hacked")) + list(tidewheel.state.rglob("hacked"))


def test_a_command_that_fails_is_tried_again_and_what_it_printed_is_kept(tidewheel, teller):
    teller.rules(
        '[[rule]]\non = ["failed"]\nto = { command = "echo no bell >&2; false" }\n'
    ).passes()
    PreparedRun(tidewheel, ALONE).starts().fails("1/a")
    teller.passes()
    [waiting] = tidewheel("notify", "list", "--json").json["waiting"]
    assert waiting["error"] == "exit status 1: no bell"


def test_up_tells_too(tidewheel, teller, hook):
    teller.rules(to(hook, '["failed"]'))
    with tidewheel.started("up", "--port", "0", "--json", "--no-worker") as up:
        up.read_until("notebook.taken")
        PreparedRun(tidewheel, ALONE).starts().fails("1/a")
        eventually(lambda: hook.events == ["failed"], "the hook hears of it")
        up.send(signal.SIGTERM)
        assert up.wait().status == 0


def test_a_server_alone_tells_too_and_its_test_runs_commands(tidewheel, teller, hook):
    """In its fast loop, which starts no process in a group of its own."""
    out = tidewheel.folder / "out"
    rule = f'[[rule]]\nname = "program"\non = ["failed"]\nto = {{ command = "date > {out}" }}\n'
    teller.rules(to(hook, '["failed"]') + rule)
    with tidewheel.started("server", "--port", "0", "--json") as server:
        url = json.loads(server.read_until('"url"'))["url"]
        token = (tidewheel.state / "token").read_text().strip()
        admin = Caller(urlsplit(url).netloc, token)
        [test] = admin.post("/notifications/test", {"rule": "program"}).json["tests"]
        assert test["sent"], test
        assert out.exists()
        eventually(lambda: admin.get("/notifications").json["sender"], "it sends")
        PreparedRun(tidewheel, ALONE).starts().fails("1/a")
        eventually(lambda: hook.events == ["failed"], "the hook hears of it")


def test_rules_that_come_later_are_found_by_those_who_run_already(tidewheel, teller, hook):
    with tidewheel.started("scheduler", "--json") as scheduler:
        PreparedRun(tidewheel, ALONE)
        teller.rules(to(hook, '["failed"]'))
        scheduler.read_until("notebook.taken")
        PreparedRun(tidewheel, ALONE).starts().fails("1/a")
        scheduler.read_until("notification.sent")
        scheduler.send(signal.SIGTERM)
        assert scheduler.wait().status == 0
