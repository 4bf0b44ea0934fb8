-- Services: take a notebook that nobody holds; a row for whoever was first.
UPDATE tidewheel.notebook
   SET epoch = epoch + 1, owner = %(owner)s, deadline_at = tidewheel.now_seconds() + %(lease_seconds)s::double precision
 WHERE name = %(name)s AND (deadline_at IS NULL OR deadline_at <= tidewheel.now_seconds())
RETURNING epoch, owner, deadline_at, body, updated_at;
