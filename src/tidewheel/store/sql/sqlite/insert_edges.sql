-- Submit, add edges: who waits for whom; an edge that is there stays as it is.
INSERT INTO dependency (parent, child, output, state)
SELECT value ->> 'parent', value ->> 'child', value ->> 'output', value ->> 'state'
  FROM json_each(:edges)
 WHERE true
    ON CONFLICT DO NOTHING;
