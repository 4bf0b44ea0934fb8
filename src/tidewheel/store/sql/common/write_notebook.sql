-- Services: write a notebook and hold it for longer; no row if another holds it by now.
UPDATE tidewheel.notebook
   SET body = :body, deadline_at = tidewheel.now_seconds() + :lease_seconds::float8, updated_at = tidewheel.now_seconds()
 WHERE name = :name AND epoch = :epoch AND owner IS NOT NULL
RETURNING epoch;
