-- Services: write a notebook and hold it for longer; no row if another holds it by now.
UPDATE notebook
   SET body = :body, deadline_at = now_seconds() + :lease_seconds, updated_at = now_seconds()
 WHERE name = :name AND epoch = :epoch AND owner IS NOT NULL
RETURNING epoch;
