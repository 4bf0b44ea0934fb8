-- Looking: what a run has forgotten, newest points first; with :only_undone, only what may not have
-- been done: lost (pruned, worth 1), removed by hand, or expired.
SELECT body FROM memory
 WHERE run = :run AND forgotten
   AND (NOT :only_undone OR body LIKE '%["pruned",1,%' OR body LIKE '%["removed",%'
        OR body LIKE '%,"expired",null,%')
 ORDER BY point DESC, name LIMIT :count;
