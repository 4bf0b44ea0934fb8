-- Settings of a queue: its lanes are put right.
WITH {lanes_put_right}
SELECT count(*) FROM put;
