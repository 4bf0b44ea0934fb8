-- Submit, add edges: one graph joins another.
UPDATE task SET graph = :new WHERE graph = :old;
