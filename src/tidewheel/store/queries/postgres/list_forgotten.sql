-- Looking: what a run has forgotten, newest points first; with only_undone, only what may not have
-- been done: lost (pruned, worth 1), removed by hand, or expired.
SELECT body FROM tidewheel.memory
 WHERE run = %(run)s AND forgotten
   AND (NOT %(only_undone)s OR body LIKE '%%["pruned",1,%%' OR body LIKE '%%["removed",%%'
        OR body LIKE '%%,"expired",null,%%')
 ORDER BY point DESC, name LIMIT %(count)s;
