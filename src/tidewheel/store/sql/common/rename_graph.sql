-- Submit, add edges: one graph joins another.
UPDATE tidewheel.task SET graph = :new WHERE graph = :old;
