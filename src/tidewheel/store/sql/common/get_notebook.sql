-- People: what a service has written down, and who holds it.
SELECT epoch, owner, deadline_at, body, updated_at FROM tidewheel.notebook WHERE name = :name;
