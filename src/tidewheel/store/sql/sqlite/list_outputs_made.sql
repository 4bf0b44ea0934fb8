-- Submit: the custom outputs that these tasks have made.
SELECT task_seq, output FROM output
 WHERE output IS NOT NULL AND task_seq IN (SELECT value FROM json_each(:seqs));
