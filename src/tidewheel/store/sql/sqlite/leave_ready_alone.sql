-- Claim: the only task just claimed is not ready any more; it stood in no lane.
DELETE FROM ready
 WHERE queue = :queue AND delayed = 0 AND laned = 0 AND rank = :rank AND task_seq = :seq;
