-- Blocks: the runs of these blocks; this transaction is the only one that writes.
SELECT block.id, run.number
  FROM processing_block AS block JOIN run ON run.number = block.run
 WHERE block.id IN (SELECT value FROM json_each(:blocks)) AND run.status <> 'deleted'
 ORDER BY run.number;
