-- Configure: nobody else writes.
SELECT 1;
