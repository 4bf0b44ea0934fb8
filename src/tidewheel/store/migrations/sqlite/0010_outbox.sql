-- Events that somebody is to be told of (SQLite): written with the batch that decided them, deleted when the event
-- handlers have been called and the mail is out. What a dead scheduler leaves here, the next one does again.

CREATE TABLE outbox (
    run INTEGER NOT NULL REFERENCES run (number) ON DELETE CASCADE,
    batch INTEGER NOT NULL,
    place INTEGER NOT NULL,  -- within the batch
    body TEXT NOT NULL,  -- JSON
    PRIMARY KEY (run, batch, place)
) WITHOUT ROWID, STRICT;
