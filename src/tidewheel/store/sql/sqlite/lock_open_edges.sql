-- Cascade: the edges that wait for these tasks, and where they are.
SELECT parent, child, output, rowid FROM dependency
 WHERE parent IN (SELECT value FROM json_each(:parents)) AND state = 'open'
 ORDER BY parent, child, output;
