-- Claim: delayed tasks whose time has come can be claimed.
UPDATE ready SET delayed = false
 WHERE queue = :queue AND delayed AND due_at <= (SELECT now_seconds());
