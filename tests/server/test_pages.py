"""What a browser finds at the root, before and after it has logged in (S8, S9, S10)."""

from tests.server.test_sessions import browser, code_of, log_in
from tests.support.patience import eventually

HTML = "text/html,application/xhtml+xml"


def shown(caller, text):
    """The page, once it shows this: what it shows may be a second old."""
    look = lambda: caller.get("//status", Accept=HTML)  # noqa: E731 - a name for one line
    eventually(lambda: text.encode() in look().body, f"{text} on the page")
    return look()


def test_a_stranger_s_browser_is_told_how_to_log_in(server):
    page = server.stranger().get("//status", Accept=HTML)
    assert page.status == 401
    assert page.headers["content-type"].startswith("text/html")
    assert b"tidewheel up" in page.body
    assert "default-src 'self'" in page.headers["content-security-policy"]


def test_a_link_that_was_used_leads_a_browser_to_how_to_get_another(server, client):
    code = code_of(client)
    assert log_in(server, code, Accept=HTML).status == 303
    page = log_in(server, code, Accept=HTML)
    assert page.status == 401
    assert b"tidewheel token link" in page.body


def test_a_stranger_s_program_is_told_as_everywhere(server):
    assert server.stranger().get("//status").code == "unauthenticated"


def test_a_session_and_a_token_see_runs_queues_and_workers(server, admin, worker):
    admin.post("/tasks", {"id": "on-page", "queue": "page-queue", "spec": 1})
    for caller in (admin, browser(server, admin)):
        page = shown(caller, "page-queue")
        assert page.status == 200 and worker.id.encode() in page.body


def test_a_page_shows_what_people_wrote_as_text_and_only_what_the_token_covers(server, admin):
    """S10: no script of anybody's is part of it."""
    admin.post("/tasks", {"queue": "<script>alert(1)</script>", "spec": 1})
    admin.post("/tasks", {"queue": "secret-queue", "spec": 1})
    page = shown(server.caller("read", queues=["<*", "other"]), "&lt;script&gt;")
    assert b"<script" not in page.body
    assert b"secret-queue" not in page.body
