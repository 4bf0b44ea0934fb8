-- Looking: what a run has forgotten, newest points first; or only what was lost, removed, left or expired.
-- Left: spawned, and over in no flow, as after `remove --forget`.
SELECT body FROM tidewheel.memory
 WHERE run = :run AND forgotten
   AND (NOT :only_undone OR body LIKE '%"kind":"pruned","death":1,%' OR body LIKE '%"kind":"removed",%'
        OR body LIKE '%"ended":"expired"%'
        OR (body NOT LIKE '%"verdicts":%' AND body LIKE '%"spawned":[%' AND body NOT LIKE '%"spawned":[]%')
        -- as earlier versions wrote it
        OR body LIKE '%["pruned",1,%' OR body LIKE '%["removed",%' OR body LIKE '%,"expired",null,%')
 ORDER BY point DESC, name LIMIT :count;
