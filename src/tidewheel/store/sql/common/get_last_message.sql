-- Jobs with a token: the last number that was given above a bound; NULL if none was.
SELECT max(number) FROM tidewheel.output
 WHERE task_seq = :seq AND attempt = :attempt AND number > :above;
