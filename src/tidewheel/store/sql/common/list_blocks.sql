-- Blocks: those of one instance, one of them, or all, newest first; with any status, or one, which is found among some of their runs.
SELECT block.id, block.sbi, block.position, block.body, run.priority,
       {run.run_columns}
  FROM tidewheel.processing_block AS block JOIN tidewheel.run AS run ON run.number = block.run
 WHERE run.status <> 'deleted' AND (:sbi::text IS NULL OR block.sbi = :sbi::text) AND (:id::text IS NULL OR block.id = :id::text)
   AND (:status::text IS NULL OR run.status = ANY (:statuses::text[]) AND :status::text = {block_status})
   AND (:workflow::text IS NULL OR run.workflow = :workflow::text)
   AND (:before::bigint IS NULL OR run.number < :before::bigint)
 ORDER BY run.number DESC LIMIT :count;
