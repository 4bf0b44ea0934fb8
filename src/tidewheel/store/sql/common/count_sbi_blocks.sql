-- Blocks: how many of each instance have which status; of stopped ones with how their reason begins, which tells aborted ones.
SELECT block.sbi, run.status, CASE WHEN run.status = 'stopped' THEN substr(run.reason, 1, 11) ELSE '' END AS reason, count(*) AS blocks
  FROM tidewheel.processing_block AS block JOIN tidewheel.run AS run ON run.number = block.run
 WHERE block.sbi = ANY (:sbis::text[]) AND run.status <> 'deleted'
 GROUP BY block.sbi, run.status, CASE WHEN run.status = 'stopped' THEN substr(run.reason, 1, 11) ELSE '' END;
