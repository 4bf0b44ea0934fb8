-- Jobs with a token: how far it is; the lease itself is its worker's to extend.
UPDATE tidewheel.lease SET progress = :progress WHERE task_seq = :seq;
