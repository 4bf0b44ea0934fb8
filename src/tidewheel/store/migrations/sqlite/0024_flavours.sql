-- Nodes by flavour: what a task asks for, what a worker offers; NULL: none is named (SQLite).
-- A JSON array of [flavour, nodes, those of them that nobody else uses]; "" is all of them together.

ALTER TABLE task ADD COLUMN flavours TEXT;
ALTER TABLE ready ADD COLUMN flavours TEXT;
ALTER TABLE worker ADD COLUMN flavours TEXT;
