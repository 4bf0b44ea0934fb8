-- Events that somebody is to be told of (PostgreSQL): written with the batch that decided them, deleted when the event
-- handlers have been called and the mail is out. What a dead scheduler leaves here, the next one does again.

CREATE TABLE tidewheel.outbox (
    run bigint NOT NULL REFERENCES tidewheel.run (number) ON DELETE CASCADE,
    batch bigint NOT NULL,
    place bigint NOT NULL,  -- within the batch
    body text NOT NULL,  -- JSON
    PRIMARY KEY (run, batch, place)
);
