-- Registry: forget a name and a version; the definition stays.
DELETE FROM tidewheel.workflow WHERE name = %(name)s AND version = %(version)s
RETURNING name, version;
