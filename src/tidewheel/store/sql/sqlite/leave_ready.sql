-- Claim: the tasks just claimed are not ready any more.
DELETE FROM ready
 WHERE (queue, delayed, rank, task_seq) IN (
           SELECT queue, 0, -priority, seq
             FROM task WHERE seq IN (SELECT value FROM json_each(:seqs)));
