-- Operators: a command and what became of it.
SELECT number, run, at, who, body, answered_at, answer, refused FROM tidewheel.command WHERE number = :number;
