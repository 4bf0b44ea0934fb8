-- Checks that cost less (SQLite): the common values are compared first. SQLite puts a list behind IN into a table of its own, anew
-- for each row that is written; that was half of what a row of history cost. What is accepted stays the same, as each of these
-- values is in the list, too. So no row is looked at: the text of the tables is changed, as sqlite.org/lang_altertable.html says.

PRAGMA writable_schema = ON;

UPDATE sqlite_schema
   SET sql = replace(sql, 'CHECK (signal IS NULL OR from_status || ', 'CHECK (signal IS NULL
        OR (signal = ''claim'' AND from_status = ''ready'' AND to_status = ''running'')
        OR (signal = ''succeed'' AND from_status = ''running'' AND to_status = ''succeeded'')
        OR from_status || ')
 WHERE type = 'table' AND name = 'history';

UPDATE sqlite_schema
   SET sql = replace(sql, 'CHECK (status IN', 'CHECK (status = ''succeeded'' OR status = ''running'' OR status IN')
 WHERE type = 'table' AND name = 'task';

PRAGMA writable_schema = RESET;
