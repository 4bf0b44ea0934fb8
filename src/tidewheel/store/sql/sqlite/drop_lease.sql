-- Report: the lease of the only task that succeeded is over.
DELETE FROM lease WHERE task_seq = :seq;
