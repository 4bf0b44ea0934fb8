-- Blocks: scheduling block instances, newest first; with any status, or one, which is that of its blocks together and found among some of their runs.
SELECT id, body, fingerprint, requested_at, requested_by
  FROM tidewheel.sbi AS sbi
 WHERE (:before::text IS NULL
        OR (requested_at, id) < (SELECT last.requested_at, last.id FROM tidewheel.sbi AS last WHERE last.id = :before::text))
   AND (:status::text IS NULL
        OR id IN (SELECT block.sbi FROM tidewheel.processing_block AS block JOIN tidewheel.run AS run ON run.number = block.run
                   WHERE run.status = ANY (:statuses::text[]))
        AND :status::text = (SELECT CASE max({block_rank}) WHEN 6 THEN 'running' WHEN 5 THEN 'failed' WHEN 4 THEN 'aborted' WHEN 3 THEN 'stopped'
                                         WHEN 1 THEN 'completed' ELSE CASE WHEN min({block_rank}) = 1 THEN 'running' ELSE 'created' END END
                               FROM tidewheel.processing_block AS block JOIN tidewheel.run AS run ON run.number = block.run
                              WHERE block.sbi = sbi.id AND run.status <> 'deleted'))
 ORDER BY requested_at DESC, id DESC LIMIT :count;
