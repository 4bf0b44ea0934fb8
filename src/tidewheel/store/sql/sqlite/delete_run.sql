-- Delete: the run itself; commands, broadcasts, xtriggers and its log of changes go with it.
DELETE FROM run WHERE number = :run AND status = 'deleted';
