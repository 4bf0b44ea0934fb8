-- Registry: forget a name and a version; the definition stays.
DELETE FROM tidewheel.workflow WHERE name = :name AND version = :version
RETURNING name, version;
