-- Claim: the tasks just claimed are not ready any more; none of them stood in a lane.
DELETE FROM ready
 WHERE (queue, delayed, laned, rank, task_seq) IN (
           SELECT queue, 0, 0, -priority, seq
             FROM task WHERE seq IN (SELECT value FROM json_each(:seqs)));
