-- A registered version knows what its registrant may see (PostgreSQL): code that somebody brought sees no more in the runs of others.

ALTER TABLE tidewheel.workflow ADD COLUMN sees text;  -- JSON array of patterns; null: everything, as for somebody who opens the store

-- Who brought the versions that are there is not known. What came from a folder of the store's owner is the owner's. Of the rest
-- each sees what is named under it, unless nobody ever had a token for less than everything.
UPDATE tidewheel.workflow SET sees = json_build_array(name)::text
 WHERE definition NOT LIKE '%-local'
   AND definition NOT IN (SELECT digest FROM tidewheel.definition WHERE kind = 'python')
   AND EXISTS (SELECT 1 FROM tidewheel.token WHERE names NOT IN ('["*"]', '{"queues": ["*"], "workflows": ["*"]}'));
