-- Variables of a task's command (PostgreSQL): a JSON object of texts. A secret is only ever named in it: secret:NAME.

ALTER TABLE tidewheel.task ADD COLUMN environment text;
