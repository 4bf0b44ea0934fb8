-- Nodes by flavour: what a task asks for, what a worker offers; NULL: none is named.
-- A JSON array of [flavour, nodes, those of them that nobody else uses]; "" is all of them together.

ALTER TABLE tidewheel.task ADD COLUMN flavours text;
ALTER TABLE tidewheel.ready ADD COLUMN flavours text;
ALTER TABLE tidewheel.worker ADD COLUMN flavours text;
