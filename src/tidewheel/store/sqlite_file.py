"""Opens the SQLite file safely, checks it, migrates it, and names what is wrong with it."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, count
from pathlib import Path
from shlex import quote

import apsw

from tidewheel import errors
from tidewheel.config import StoreSettings
from tidewheel.store import migrate

Migrations = tuple[migrate.Migration, ...]

# What the migrations make of nothing, written down by docs/write_schema.py: an eighth of the
# time, as each change of a table reads the schema again.
SQLITE_SCHEMA = migrate.MIGRATIONS / "sqlite_schema.sql"

# Earlier versions can corrupt a WAL database when two connections write and checkpoint at once.
SQLITE_VERSION_MIN = (3, 51, 3)
# A full check of a large file would hold up every command; `tidewheel verify` does it.
QUICK_CHECK_BYTES_MAX = 16 * 1024 * 1024
# How long to sleep before another try while somebody else writes: at first, then at most.
BUSY_SLEEP_SECONDS, BUSY_SHORT_TRIES, BUSY_SLEEP_SECONDS_MAX = 0.0002, 100, 0.002
NO_SHARED_MEMORY = apsw.SQLITE_IOERR_SHMSIZE  # which processes share; it lies on the same disk
SCHEMA_VERSION_TABLE = """
CREATE TABLE IF NOT EXISTS schema_version (
    version INTEGER PRIMARY KEY,
    applied_at REAL NOT NULL
) STRICT
"""

NOTEBOOKS_WERE_SIXTH = """
UPDATE schema_version SET version = 8
 WHERE version = 6
   AND NOT EXISTS (SELECT 1 FROM schema_version WHERE version > 6)
   AND EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'notebook')
"""


def file_path(url: str) -> Path:
    """Returns the path in ``sqlite:///path`` (relative) or ``sqlite:////path`` (absolute).

    Raises BadSetting for any other URL.
    """
    prefix = "sqlite:///"
    if not url.startswith(prefix) or len(url) == len(prefix):
        raise errors.BadSetting("store", url, "sqlite:///PATH or postgresql://…")
    return Path(url.removeprefix(prefix)).expanduser().absolute()


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Raises SQLite's errors in the block as errors of tidewheel."""
    try:
        yield
    except apsw.Error as error:
        failure = in_our_words(path, error)
    else:
        return
    raise failure


class StoreFiles:
    """Knows which files a store has open: the database, its log, and the index of that.

    A program that goes on without one of them writes what nobody else reads. With a new log or
    index beside the old one, two processes write over each other.
    """

    def __init__(self, path: Path) -> None:
        self._names = [f"{path}{part}" for part in ("", "-wal", "-shm")]
        self._opened = _identities(self._names)

    def require(self) -> None:
        """Raises StoreUnreachable if a file is gone, or is another one."""
        found = _identities(self._names)
        if found == self._opened:
            return
        for name, there, opened in zip(self._names, found, self._opened, strict=True):
            if there != opened:
                what, todo = f"the file {name}, a part of the store,", ""
                if name == self._names[0]:
                    what, todo = f"the store {name}", ", put the right file there,"
                raise errors.StoreUnreachable(
                    f"{what} was deleted, moved or replaced while this program had it open, "
                    f"so nothing more is written; stop the program{todo} and start it again"
                )

    def close(self, connection: apsw.Connection) -> None:
        """Closes a connection; it leaves the log as it is if the index is gone or another one.

        Others have written into the log meanwhile, which the old index does not know. The last
        connection that is closed would copy what it knows, and delete the log.
        """
        with contextlib.suppress(apsw.ConnectionClosedError):
            if _identities(self._names[-1:]) != self._opened[-1:]:
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
            connection.close()


def _identities(names: Iterable[str]) -> list[tuple[int, int] | None]:
    """Returns which files have these names now; None for one that is not there."""
    found: list[tuple[int, int] | None] = []
    for name in names:
        try:
            facts = os.stat(name)
        except OSError:
            found.append(None)
        else:
            found.append((facts.st_dev, facts.st_ino))
    return found


def in_our_words(path: Path, error: BaseException) -> BaseException:
    """Returns the error of tidewheel that SQLite's error stands for; others as they are."""
    told: errors.TidewheelError
    match error:
        case apsw.FullError():
            told = errors.StoreFull(errors.StoreFull.__doc__)
        case apsw.IOError() if getattr(error, "extendedresult", 0) == NO_SHARED_MEMORY:
            told = errors.StoreFull(errors.StoreFull.__doc__)
        case apsw.BusyError() | apsw.LockedError():
            told = errors.StoreBusy(f"another process has locked {path}; try again")
        case apsw.CorruptError() | apsw.NotADBError():
            told = errors.CorruptStore(str(path), str(error))
        case (
            apsw.IOError()
            | apsw.CantOpenError()
            | apsw.ReadOnlyError()
            | apsw.PermissionsError()
        ):
            told = errors.StoreUnreachable(
                f"the store {path} cannot be read or written ({error}); "
                "check that the folder exists, is writable and its disk works"
            )
        case _:
            return error
    told.__cause__ = error
    return told


def connect(
    path: Path,
    settings: StoreSettings,
    *,
    clock: Callable[..., float],
    vfs: str | None = None,
    flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE,
) -> apsw.Connection:
    """Opens a connection with every setting that the promises of the store depend on."""
    if tuple(map(int, apsw.sqlitelibversion().split("."))) < SQLITE_VERSION_MIN:
        needed = ".".join(map(str, SQLITE_VERSION_MIN))
        raise errors.UnsafeStore(
            f"SQLite {apsw.sqlitelibversion()} can corrupt a shared database; {needed} or "
            "later is needed: pip install --upgrade apsw"
        )
    with translated(path):
        connection = apsw.Connection(str(path), flags=flags, vfs=vfs, statementcachesize=256)
        try:
            connection.set_busy_handler(patience(settings.busy_seconds_max))
            mode = connection.pragma("journal_mode", "wal")
            connection.pragma("synchronous", "full")
            connection.pragma("foreign_keys", True)
            # The plan of a statement depends on no value that is given to it. Otherwise SQLite
            # would compile most of them anew whenever a value changes: a fifth of a
            # millisecond for a claim, more than to execute it.
            connection.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)
            # Within one statement it is the same time: SQLite asks once, not for each row. To
            # ask takes Python's lock, for which other threads may have to wait.
            connection.create_scalar_function("now_seconds", clock, 0, deterministic=True)
        except BaseException:
            connection.close()
            raise
    if mode != "wal":
        connection.close()
        raise errors.UnsafeStore(
            f"the disk of {path} cannot be shared by processes (SQLite's journal mode stays "
            f"{mode!r} there). Put the store on a local disk"
        )
    return connection


def patience(seconds_max: float) -> Callable[[int], bool]:
    """Returns a function that is called while another process writes, and says whether to try
    once more. SQLite's own would sleep up to 100 ms at a time, and miss its turn again and
    again beside a busy writer, whose transactions take a few ms."""
    give_up_at = 0.0

    def try_again(tries: int) -> bool:
        nonlocal give_up_at
        now = time.monotonic()
        if tries == 0:
            give_up_at = now + seconds_max
        time.sleep(BUSY_SLEEP_SECONDS if tries < BUSY_SHORT_TRIES else BUSY_SLEEP_SECONDS_MAX)
        return now < give_up_at

    return try_again


def prepare(
    path: Path,
    settings: StoreSettings,
    *,
    vfs: str | None = None,
    migrations: Migrations | None = None,
) -> None:
    """Makes the file if it is missing; refuses one that is damaged or of another version."""
    known = migrations or migrate.load_migrations("sqlite")
    if not path.exists():
        _create(path, settings, known)
    elif path.stat().st_size == 0:
        # Nothing of ours is ever empty. To fill it again would hide that all tasks are gone.
        raise errors.CorruptStore(str(path), "the file is empty")
    else:
        _refuse_exposed(path)
    with _connected(path, settings, vfs) as connection, translated(path):
        if path.stat().st_size <= QUICK_CHECK_BYTES_MAX:
            seen = connection.pragma("quick_check", 1)
            if seen != "ok":
                raise errors.CorruptStore(str(path), str(seen).splitlines()[-1])
        applied = _own_versions(path, connection)
        if not applied:
            _apply(connection, known)
        else:
            migrate.check_version(known, applied)


def _connected(
    path: Path, settings: StoreSettings, vfs: str | None = None
) -> contextlib.closing[apsw.Connection]:
    """Opens a connection for the block; its clock stands still, as nobody asks for the time."""
    return contextlib.closing(connect(path, settings, clock=lambda: 0.0, vfs=vfs))


def _refuse_exposed(path: Path) -> None:
    """Raises UnsafeStore for a file that every user of the machine can open (S31).

    A user who can write a command into the store runs it as the worker's user. A file that only
    a group can open is accepted: somebody chose that group, but nobody chose all users of a
    machine.
    """
    mode = stat.S_IMODE(path.stat().st_mode)
    reachable = all(parent.stat().st_mode & stat.S_IXOTH for parent in path.parents)
    if mode & stat.S_IRWXO and reachable:
        raise errors.UnsafeStore(
            f"every user of this machine can open the store {path} (mode {mode:04o}). "
            f"Forbid this: chmod o= {quote(str(path))}"
        )


def migrate_sqlite(
    settings: StoreSettings, migrations: Migrations | None = None
) -> migrate.MigrationReport:
    """Brings the file to this program's schema; a file that changes is copied before."""
    known = migrations or migrate.load_migrations("sqlite")
    path = file_path(settings.url)
    if not path.exists():
        prepare(path, settings, migrations=known)
    backups: list[Path] = []

    def back_up(version: int) -> None:
        if version > 0 and not backups:
            backups.append(_back_up(path, settings, version))

    with _connected(path, settings) as connection, translated(path):
        found = max(_own_versions(path, connection), default=0)
        _apply(connection, known, back_up)
    backup = backups[0] if backups else None
    return migrate.MigrationReport(
        from_version=found, to_version=migrate.known_version(known), backup=backup
    )


def _create(path: Path, settings: StoreSettings, migrations: Migrations) -> None:
    """Builds the file under another name, and links it to its own when it is complete. So under
    its own name it is complete or not there at all."""
    if path.with_name(path.name + "-wal").exists():
        raise errors.CorruptStore(str(path), "the file is missing, but its -wal file is there")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    import tempfile  # noqa: PLC0415 - slow, and most files are there already

    # Nobody but its owner may read what tasks say and do.
    descriptor, built = tempfile.mkstemp(prefix=f"{path.name}.new-", dir=path.parent)
    os.close(descriptor)
    try:
        with _connected(Path(built), settings) as connection, translated(path):
            # Nobody knows of it yet: it is synced once, as a whole, not after each migration.
            connection.pragma("synchronous", "off")
            if migrations is migrate.load_migrations("sqlite"):
                with connection:
                    connection.execute(SQLITE_SCHEMA.read_text(encoding="utf-8")).fetchall()
            _apply(connection, migrations)  # those that the written schema does not know yet
            # To close it would do so, too, and tell nobody that the disk is full.
            connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        _sync(Path(built))
        with contextlib.suppress(FileExistsError):  # somebody else was faster
            os.link(built, path)
    finally:
        for left in (built, f"{built}-wal", f"{built}-shm"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(left)
    for folder in (path.parent, path.parent.parent):
        _sync(folder)


def _own_versions(path: Path, connection: apsw.Connection) -> set[int]:
    """Returns the versions that were applied; an empty set if nothing is in the file yet.
    Raises UnsafeStore for a database of another program."""
    applied = _applied(connection)
    others = "SELECT count(*) FROM sqlite_schema WHERE name NOT LIKE 'schema_version%'"
    if not applied and connection.execute(others).get:
        raise errors.UnsafeStore(
            f"{path} is a database of another program, and was left as it is. "
            "Name another file: sqlite:///PATH"
        )
    return applied


def _applied(connection: apsw.Connection) -> set[int]:
    exists = "SELECT count(*) FROM sqlite_schema WHERE name = 'schema_version'"
    if not connection.execute(exists).get:
        return set()
    return {version for (version,) in connection.execute("SELECT version FROM schema_version")}


def _apply(
    connection: apsw.Connection,
    migrations: Migrations,
    before: Callable[[int], None] = lambda _: None,
) -> None:
    """Applies each migration, with its version row, in one transaction: killed at any
    statement, the next run starts that migration again. ``before`` is told the version that is
    about to change, while nobody else can write."""
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            applied = _applied(connection)
            todo = migrate.pending(migrations, applied)
            if todo:
                before(max(applied, default=0))
                connection.execute(SCHEMA_VERSION_TABLE)
                connection.execute(NOTEBOOKS_WERE_SIXTH)
                todo = migrate.pending(migrations, _applied(connection))
                # Fetched, or what follows a statement with rows would not be executed.
                connection.execute(todo[0].sql).fetchall()
                connection.execute(
                    "INSERT INTO schema_version (version, applied_at) "
                    "VALUES (?, unixepoch('subsec'))",
                    (todo[0].version,),
                )
            connection.execute("COMMIT")
        except BaseException:  # no transaction stays open behind an error
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        if len(todo) <= 1:
            return


def _back_up(path: Path, settings: StoreSettings, version: int) -> Path:
    """Copies the file before its schema changes, and returns the path of the copy."""
    with _checked_copy(path, settings, path) as copy:
        backup = _free_name(path, version)
        # A backup that is there under its name is complete.
        os.rename(copy, backup)
    _sync(path.parent)
    return backup


@contextlib.contextmanager
def _checked_copy(path: Path, settings: StoreSettings, beside: Path) -> Iterator[Path]:
    """Copies the file as it was last committed, under a name that nobody knows, and checks the
    copy; what the block does not rename is removed."""
    import tempfile  # noqa: PLC0415 - slow, and few files have to be copied

    descriptor, name = tempfile.mkstemp(prefix=f"{beside.name}.copy-", dir=beside.parent)
    os.close(descriptor)
    copy = Path(name)
    try:
        with _connected(path, settings) as connection:
            connection.execute("VACUUM INTO ?", (name,))
        _check_copy(copy)
        _sync(copy)
        yield copy
    finally:
        copy.unlink(missing_ok=True)


def _check_copy(copy: Path) -> None:
    reading = contextlib.closing(apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READONLY))
    with reading as connection:
        seen = connection.pragma("integrity_check", 1)
    if seen != "ok":
        raise errors.CorruptStore(str(copy), str(seen).splitlines()[-1])


def copy_sqlite(settings: StoreSettings, target: Path) -> None:
    """Copies the store to a new file, as it was last committed; others may write meanwhile.

    Under its name the copy is complete and checked, or it is not there at all. Raises
    BadSetting for a name that is taken, or that no file can have.
    """
    path = file_path(settings.url)
    if os.path.realpath(target) in _beside(os.path.realpath(path)):
        fault = f"SQLite would take {target} for a part of the store; name another file"
        raise errors.BadSetting("file", str(target), fault=fault)
    _refuse_taken(target)
    try:
        with _connected(path, settings) as connection, translated(path):
            _own_versions(path, connection)
        with translated(target), _checked_copy(path, settings, target) as copy:
            try:
                os.link(copy, target)  # unlike a renaming it replaces nothing
            except PermissionError:  # a file system without links
                _refuse_taken(target)
                os.rename(copy, target)
        _sync(target.parent)
    except errors.StoreFull as error:
        raise errors.StoreFull(
            f"there is too little space for the copy {target}, which was not made; free space, "
            "or name a file on another disk"
        ) from error
    except OSError as error:
        fault = (
            f"{target} cannot be written ({error.strerror}); name a file in a folder that "
            "exists and in which you may write"
        )
        raise errors.BadSetting("file", str(target), fault=fault) from error


def _refuse_taken(target: Path) -> None:
    if target.is_dir():
        fault = f"{target} is a folder; name a new file in it"
        raise errors.BadSetting("file", str(target), fault=fault)
    for taken in (str(target), *_beside(str(target))):
        if os.path.lexists(taken):
            fault = f"{taken} exists, and a backup overwrites nothing; name a new file"
            if taken != str(target):
                fault = (
                    f"{taken} was left behind by another database, and SQLite would apply it "
                    f"to the copy; name a new file, or remove {taken}"
                )
            raise errors.BadSetting("file", str(target), fault=fault)


def _beside(path: str) -> list[str]:
    """Returns the names of the files that SQLite takes for parts of a database."""
    return [f"{path}{part}" for part in ("-wal", "-journal", "-shm")]


def _free_name(path: Path, version: int) -> Path:
    backup = path.with_name(f"{path.name}.backup-v{version}")
    later = (backup.with_name(f"{backup.name}-{number}") for number in count(2))
    return next(one for one in chain([backup], later) if not one.exists())


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
