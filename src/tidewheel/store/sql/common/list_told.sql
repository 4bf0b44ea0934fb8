-- Report: what tasks have told so far, and in which attempt.
SELECT task_seq, attempt, body FROM tidewheel.task_values WHERE task_seq = ANY (:seqs::bigint[]);
