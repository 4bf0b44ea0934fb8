-- Blocks: the runs of these blocks, which nobody deletes or changes until this transaction is over.
SELECT block.id, run.number
  FROM tidewheel.processing_block AS block JOIN tidewheel.run ON run.number = block.run
 WHERE block.id = ANY (:blocks::text[]) AND run.status <> 'deleted'
 ORDER BY run.number
   FOR SHARE OF run;
