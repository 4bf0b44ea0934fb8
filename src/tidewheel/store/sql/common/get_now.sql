-- Everybody: the database's clock.
SELECT tidewheel.now_seconds();
