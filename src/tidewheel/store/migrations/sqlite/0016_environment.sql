-- Variables of a task's command (SQLite): a JSON object of texts. A secret is only ever named in it: secret:NAME.

ALTER TABLE task ADD COLUMN environment TEXT;
