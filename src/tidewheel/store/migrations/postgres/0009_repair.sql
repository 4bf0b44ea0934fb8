-- Brings every store to one schema (PostgreSQL). Migrations 1 to 3 were edited after they had landed, so a store may
-- lack columns of `worker`, `broadcast` and `token`, what happens to `worker_token` when a token goes, and an index.

ALTER TABLE tidewheel.worker ADD COLUMN IF NOT EXISTS abilities text NOT NULL DEFAULT '{"commands": true, "handlers": null, "bare": true}';
ALTER TABLE tidewheel.worker ALTER COLUMN abilities DROP DEFAULT;
ALTER TABLE tidewheel.worker ADD COLUMN IF NOT EXISTS trouble text;

ALTER TABLE tidewheel.broadcast ADD COLUMN IF NOT EXISTS place bigint;
UPDATE tidewheel.broadcast AS old
   SET place = numbered.place
  FROM (SELECT run, point, namespace, setting,
               row_number() OVER (PARTITION BY run ORDER BY point, namespace, setting) AS place
          FROM tidewheel.broadcast) AS numbered
 WHERE old.place IS NULL
   AND (old.run, old.point, old.namespace, old.setting)
     = (numbered.run, numbered.point, numbered.namespace, numbered.setting);
ALTER TABLE tidewheel.broadcast ALTER COLUMN place SET NOT NULL;

ALTER TABLE tidewheel.token
    ADD COLUMN IF NOT EXISTS kind text NOT NULL DEFAULT 'bearer' CHECK (kind IN ('bearer', 'login', 'session'));
ALTER TABLE tidewheel.token ALTER COLUMN kind DROP DEFAULT;
ALTER TABLE tidewheel.token
    ADD COLUMN IF NOT EXISTS parent bigint REFERENCES tidewheel.token (number) ON DELETE CASCADE;

ALTER TABLE tidewheel.worker_token DROP CONSTRAINT worker_token_token_fkey;
ALTER TABLE tidewheel.worker_token
    ADD CONSTRAINT worker_token_token_fkey
        FOREIGN KEY (token) REFERENCES tidewheel.token (number) ON DELETE CASCADE;

CREATE INDEX IF NOT EXISTS memory_known ON tidewheel.memory (run, point, name) WHERE NOT forgotten;
