-- Claim: delayed tasks whose time has come can be claimed.
UPDATE tidewheel.ready SET delayed = false
 WHERE (queue, delayed, laned, rank, task_seq) IN (
           SELECT queue, delayed, laned, rank, task_seq
             FROM tidewheel.ready
            WHERE queue = :queue AND delayed AND due_at <= (SELECT tidewheel.now_seconds())
              FOR UPDATE SKIP LOCKED);
