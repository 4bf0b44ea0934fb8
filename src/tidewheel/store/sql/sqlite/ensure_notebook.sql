-- Services: a notebook that nobody has held yet.
INSERT INTO notebook (name, updated_at) VALUES (:name, now_seconds())
ON CONFLICT (name) DO NOTHING;
