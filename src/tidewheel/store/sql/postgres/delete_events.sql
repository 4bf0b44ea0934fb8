-- Scheduler: what it has dealt with.
DELETE FROM tidewheel.event WHERE seq = ANY (%(seqs)s::bigint[]) AND run = %(run)s;
