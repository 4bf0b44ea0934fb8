-- List: by what a pattern knows tasks.
SELECT seq, id, name FROM tidewheel.task WHERE seq = ANY (:seqs::bigint[]);
