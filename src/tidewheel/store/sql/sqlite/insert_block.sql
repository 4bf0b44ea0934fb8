-- Blocks: a processing block and its run.
INSERT INTO processing_block (id, sbi, position, run, body) VALUES (:id, :sbi, :position, :run, :body);
