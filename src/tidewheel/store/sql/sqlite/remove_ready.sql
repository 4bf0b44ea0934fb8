-- Cascade: these tasks are not ready any more.
DELETE FROM ready
 WHERE (queue, delayed, laned, rank, task_seq) IN (
           SELECT queue, flag.value, lane.value, -priority, seq
             FROM task, json_each('[0, 1]') AS flag, json_each('[0, 1]') AS lane
            WHERE seq IN (SELECT value FROM json_each(:seqs)));
