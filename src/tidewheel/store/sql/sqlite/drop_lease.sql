-- Report: success ended this lease.
DELETE FROM lease WHERE task_seq = :seq;
