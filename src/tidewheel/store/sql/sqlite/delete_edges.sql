-- Remove edges: whatever the output.
DELETE FROM dependency
 WHERE (parent, child) IN (SELECT value ->> 'parent', value ->> 'child' FROM jsonb_each(:edges));
