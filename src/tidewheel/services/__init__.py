"""Holds the loops of tidewheel: each service has one shape, start / stop / run_once."""
