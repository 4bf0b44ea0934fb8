-- Blocks: those of one instance, one of them, or all, newest first.
SELECT block.id, block.sbi, block.position, block.body, run.priority,
       run.number, run.name, run.workflow, run.definition, run.options, run.folder, run.queue, run.status, run.reason, run.epoch, run.batch,
       run.host, run.boot_id, run.pid, run.process_started, run.deadline_at, run.created_at, run.updated_at, run.ended_at, run.given
  FROM tidewheel.processing_block AS block JOIN tidewheel.run AS run ON run.number = block.run
 WHERE run.status <> 'deleted' AND (:sbi::text IS NULL OR block.sbi = :sbi::text) AND (:id::text IS NULL OR block.id = :id::text)
 ORDER BY run.number DESC LIMIT :count;
