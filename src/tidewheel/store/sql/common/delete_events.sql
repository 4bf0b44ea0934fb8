-- Scheduler: what it has dealt with.
DELETE FROM tidewheel.event WHERE seq = ANY (:seqs::bigint[]) AND run = :run;
