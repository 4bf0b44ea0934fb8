-- Delete: an instance goes with the last of its blocks.
DELETE FROM tidewheel.sbi
 WHERE id = (SELECT sbi FROM tidewheel.processing_block WHERE run = :run)
   AND NOT EXISTS (SELECT 1 FROM tidewheel.processing_block AS other WHERE other.sbi = sbi.id AND other.run <> :run);
