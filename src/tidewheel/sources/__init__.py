"""Keeps the old name of `tidewheel.formats` for definitions and jobs of earlier versions."""
