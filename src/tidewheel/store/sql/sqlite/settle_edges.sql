-- Cascade: these edges are met or dead.
UPDATE dependency
   SET state = value ->> 'state'
  FROM jsonb_each(:edges)
 WHERE dependency.rowid = value ->> 'place';
