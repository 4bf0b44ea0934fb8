-- Services: write a notebook and hold it for longer; no row if another holds it by now.
UPDATE tidewheel.notebook
   SET body = %(body)s, deadline_at = tidewheel.now_seconds() + %(lease_seconds)s::double precision, updated_at = tidewheel.now_seconds()
 WHERE name = %(name)s AND epoch = %(epoch)s AND owner IS NOT NULL
RETURNING epoch;
