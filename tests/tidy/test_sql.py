"""Style 7: one statement per file, said once where dialects agree, and none is built."""

import ast
import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.tidy.repository import PACKAGE, broken, parsed, python_files
from tidewheel.core.operator.views import WITHDRAWN_STATUSES
from tidewheel.store.sql import load_queries, translate

LANDED = Path(__file__).with_name("landed_migrations.sha256")
QUERIES = PACKAGE / "store" / "sql"
DIALECTS = ("postgres", "sqlite")

EXECUTES = {"execute", "executemany", "executescript"}
BUILDERS = {"format", "join", "replace"}

# Text in which a semicolon or a star means nothing: comments, literals, quoted names.
QUIET = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"[^\"]*\"|\$(\w*)\$.*?\$\1\$", re.DOTALL
)
STAR = re.compile(r"\b(?:SELECT|RETURNING)\s+(?:DISTINCT\s+)?(?:\w+\.)?\*", re.IGNORECASE)
SENTENCE = re.compile(r"-- [A-Z].*\.")


def bad_query(text: str) -> list[str]:
    first, _, _ = text.partition("\n")
    statements = [part for part in QUIET.sub(" ", text).split(";") if part.strip()]
    findings = []
    if not SENTENCE.fullmatch(first):
        findings.append("the first line is no comment that says who uses it and why")
    if len(statements) != 1:
        findings.append(f"{len(statements)} statements, one is wanted")
    if any(STAR.search(statement) for statement in statements):
        findings.append("a star for columns: name them")
    return findings


def built_statements(text: str) -> list[str]:
    return [
        f"line {node.lineno}: {ast.unparse(node)}"
        for node in ast.walk(parsed(text))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr in EXECUTES
        and node.args
        and _is_built(node.args[0])
    ]


def _is_built(statement: ast.expr) -> bool:
    match statement:
        case ast.JoinedStr() | ast.BinOp(op=ast.Add() | ast.Mod()):
            return True
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in BUILDERS
    return False


def query_names(dialect: str) -> set[str]:
    return {path.name for path in (QUERIES / dialect).glob("*.sql")}


def test_each_query_is_one_explained_statement():
    assert broken(bad_query, sorted(QUERIES.rglob("*.sql"))) == []


# The hot paths (Transaction.insert, claim, fold_lanes and succeed) are one statement on
# PostgreSQL, where a WITH may write; on SQLite they are these short ones.
SQLITE_ONLY = {
    "add_claims.sql",
    "add_creations.sql",
    "add_successes.sql",
    "drop_lanes.sql",
    "drop_lease.sql",
    "keep_successes.sql",
    "leave_ready.sql",
    "leave_ready_alone.sql",
    "open_lanes.sql",
    "take_news.sql",
}
POSTGRES_ONLY = {"claim_plainly.sql"}  # a file in this process has no round trips to save


def test_both_dialects_answer_the_same_queries():
    postgres, sqlite = map(query_names, DIALECTS)
    assert sqlite - postgres == SQLITE_ONLY
    assert postgres - sqlite == POSTGRES_ONLY
    assert not query_names("common") & sqlite


def test_what_could_be_said_once_is_said_once():
    """A statement for PostgreSQL that translates to the one for SQLite belongs in common/."""
    twice = [
        name
        for name in query_names("postgres") - POSTGRES_ONLY
        if _same(
            translate(_text("postgres", name), "sqlite"),
            load_queries("sqlite")[Path(name).stem],
        )
    ]
    assert twice == []


def _text(folder: str, name: str) -> str:
    return (QUERIES / folder / name).read_text(encoding="utf-8")


def _same(one: str, other: str) -> bool:
    return re.sub(r"--[^\n]*", "", one).split() == re.sub(r"--[^\n]*", "", other).split()


def test_every_fragment_is_used():
    used = {
        name
        for path in QUERIES.rglob("*.sql")
        for name in re.findall(r"\{(?::|\w+\.)?(\w+)\}", path.read_text(encoding="utf-8"))
    }
    assert used == {path.stem for path in (QUERIES / "fragments").glob("*.sql")}


def test_no_statement_is_built_from_pieces():
    assert broken(built_statements, python_files("src/tidewheel/store")) == []


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM task;\n",
        "-- no sentence\nSELECT id FROM task;\n",
        "-- Monitor: reads two.\nSELECT id FROM task; SELECT id FROM lease;\n",
        "-- Monitor: reads nothing.\n",
        "-- Client: reads all.\nSELECT * FROM task;\n",
        "-- Client: reads all.\nSELECT task.* FROM task;\n",
        "-- Client: takes all.\nDELETE FROM task RETURNING *;\n",
    ],
)
def test_a_bad_query_is_found(text):
    assert bad_query(text)


@pytest.mark.parametrize(
    "call",
    [
        'db.execute(f"SELECT {column} FROM task")',
        'db.execute("SELECT id FROM " + table)',
        'db.execute("SELECT %s FROM task" % column)',
        'db.executemany("SELECT {}".format(column), rows)',
        'self._db.execute(" ".join(parts))',
    ],
)
def test_a_built_statement_is_found(call):
    assert built_statements(call)


def test_good_sql_is_accepted():
    assert not bad_query("-- Client: counts; it's cheap.\nSELECT count(*), ';' FROM task;\n")
    assert not built_statements("db.execute(queries.claim_tasks, {'limit': 1})")


def test_a_migration_that_has_landed_is_never_edited():
    """Stores were made with it. Whatever is to be otherwise is a migration of its own, which
    gets its line in the commit that brings it: sha256sum */*.sql, in store/migrations."""
    folder = PACKAGE / "store" / "migrations"
    found = {
        str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest()
        for path in folder.glob("*/*.sql")
    }
    landed = (line.split() for line in LANDED.read_text(encoding="utf-8").splitlines())
    assert found == {name: digest for digest, name in landed}


def test_both_dialects_have_the_same_migrations():
    folder = PACKAGE / "store" / "migrations"
    sqlite, postgres = ({path.name for path in (folder / one).iterdir()} for one in DIALECTS)
    assert sqlite == postgres


def test_verify_knows_every_status_in_which_nothing_of_a_run_may_be_claimed():
    fragment = (QUERIES / "fragments" / "withdrawn_statuses.sql").read_text(encoding="utf-8")
    assert set(re.findall(r"'(\w+)'", fragment)) == set(WITHDRAWN_STATUSES)
