-- Services: a notebook that nobody has held yet.
INSERT INTO tidewheel.notebook (name, updated_at) VALUES (:name, tidewheel.now_seconds())
ON CONFLICT (name) DO NOTHING;
