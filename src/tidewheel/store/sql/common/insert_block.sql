-- Blocks: a processing block and its run.
INSERT INTO tidewheel.processing_block (id, sbi, position, run, body) VALUES (:id, :sbi, :position, :run, :body);
