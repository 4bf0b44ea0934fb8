-- Blocks: which runs wait for which, and for what.
INSERT INTO run_need (run, parent, condition)
SELECT value ->> 'run', value ->> 'parent', value ->> 'condition' FROM json_each(:needs);
