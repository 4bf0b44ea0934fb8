"""Common statements, as each database gets them."""

import re

import apsw
import pytest

from tidewheel.config import StoreSettings
from tidewheel.store.sql import HERE, load_queries, translate
from tidewheel.store.sqlite import parameter_names
from tidewheel.store.sqlite_file import connect, prepare


def words(text: str) -> str:
    return " ".join(text.split()).replace(" ;", ";")


@pytest.mark.parametrize(
    ("common", "postgres", "sqlite"),
    [
        ("WHERE run = :run", "WHERE run = %(run)s", "WHERE run = :run"),
        (":a::text IS NULL", "%(a)s::text IS NULL", ":a IS NULL"),
        ("now()::float8, '0'::xid8", "now()::float8, '0'::xid8", "now(), '0'"),
        (
            "FROM tidewheel.task AS t, tidewheel.now_seconds()",
            "FROM tidewheel.task AS t, tidewheel.now_seconds()",
            "FROM task AS t, now_seconds()",
        ),
        (
            "seq = ANY (:seqs::bigint[])",
            "seq = ANY (%(seqs)s::bigint[])",
            "seq IN (SELECT value FROM json_each(:seqs))",
        ),
        ("seq = ANY (ARRAY[one.seq])", "seq = ANY (ARRAY[one.seq])", "seq = one.seq"),
        (
            "FROM json_to_recordset(:rows::json) AS put (\n point bigint, name text)",
            "FROM json_to_recordset(%(rows)s::json) AS put ( point bigint, name text)",
            "FROM (SELECT value ->> 'point' AS point, value ->> 'name' AS name"
            " FROM jsonb_each(:rows)) AS put",
        ),
        ("ORDER BY seq\n FOR UPDATE;", "ORDER BY seq FOR UPDATE;", "ORDER BY seq;"),
        (
            "ORDER BY seq FOR UPDATE OF task, lease SKIP LOCKED;",
            "ORDER BY seq FOR UPDATE OF task, lease SKIP LOCKED;",
            "ORDER BY seq;",
        ),
        (
            "> now() FOR NO KEY UPDATE RETURNING a",
            "> now() FOR NO KEY UPDATE RETURNING a",
            "> now() RETURNING a",
        ),
        (
            'ORDER BY a COLLATE "C" LIMIT 1',
            'ORDER BY a COLLATE "C" LIMIT 1',
            "ORDER BY a LIMIT 1",
        ),
        # What is no code stays as it is, but for the driver's own sign.
        ("LIKE '%:a%'", "LIKE '%%:a%%'", "LIKE '%:a%'"),
        ("a % 2", "a %% 2", "a % 2"),
        (
            "'tidewheel.x' || 'it''s :a::text FOR UPDATE'",
            "'tidewheel.x' || 'it''s :a::text FOR UPDATE'",
            "'tidewheel.x' || 'it''s :a::text FOR UPDATE'",
        ),
        (
            "-- 5 % of tidewheel.task: :a::text\nSELECT 1",
            "-- 5 %% of tidewheel.task: :a::text SELECT 1",
            "-- 5 % of tidewheel.task: :a::text SELECT 1",
        ),
        ("'{task_filter}'", "'{task_filter}'", "'{task_filter}'"),
    ],
)
def test_a_common_statement_becomes_what_a_database_understands(common, postgres, sqlite):
    assert words(translate(common, "postgres")) == postgres
    assert words(translate(common, "sqlite")) == sqlite


def test_a_fragment_is_put_in_and_translated():
    text = load_queries("sqlite")["find_tasks"]
    assert "{" not in text
    assert "AND (:tag IS NULL OR task.tag = :tag)" in text
    assert "AND (%(tag)s::text IS NULL OR" in load_queries("postgres")["find_tasks"]


def test_sqlite_is_given_no_comments_and_no_indentation_but_every_literal():
    for name in ("claim_tasks", "add_ready", "find_tasks"):
        text = load_queries("sqlite")[name]
        assert "--" not in text
        assert all(line and line == line.strip() for line in text.split("\n"))
    assert "'\"runner:'" in load_queries("sqlite")["claim_tasks"]


def test_parameters_are_given_to_sqlite_in_the_order_in_which_it_numbers_them(tmp_path):
    path, settings = tmp_path / "store.db", StoreSettings(url=f"sqlite:///{tmp_path}/store.db")
    prepare(path, settings, vfs=None)
    connection, numbered = connect(path, settings, clock=lambda: 0.0, vfs=None), []

    def note(cursor, *_):
        numbered.append(cursor.bindings_names)
        return False  # it is compiled, and not run

    connection.exec_trace = note
    queries = load_queries("sqlite")
    for name in {
        one.stem for folder in ("common", "sqlite") for one in (HERE / folder).glob("*")
    }:
        names = parameter_names(queries[name])
        with pytest.raises(apsw.ExecTraceAbort):
            connection.execute(queries[name], dict.fromkeys(names))
        assert numbered.pop() == names, name
    connection.close()


def test_no_literal_has_more_than_one_line():
    for path in HERE.glob("*/*.sql"):
        text = re.sub(r"--[^\n]*", "", path.read_text())
        assert not [one for one in re.findall(r"'[^']*'|\"[^\"]*\"", text) if "\n" in one], path


def test_nothing_of_postgres_is_left_for_sqlite():
    queries = load_queries("sqlite")
    for path in (HERE / "common").glob("*.sql"):
        text = re.sub(r"--[^\n]*|'[^']*'", "", queries[path.stem])
        assert not re.search(r"::|tidewheel\.|\bANY\b|\bFOR\b|recordset|COLLATE", text), path


def test_a_query_that_is_nowhere_is_no_query():
    with pytest.raises(KeyError):
        load_queries("sqlite")["guess_tasks"]
