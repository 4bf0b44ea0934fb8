-- Audit: this is the last entry now.
UPDATE tidewheel.audit_head SET number = :number, sha256 = :sha256;
