-- Submit: the custom outputs that these tasks have made.
SELECT task_seq, output FROM tidewheel.output
 WHERE output IS NOT NULL AND task_seq = ANY (:seqs::bigint[]);
