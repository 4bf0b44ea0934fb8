"""Reads SIP workflow definitions 2.0 (seed 004): YAML or JSON with folders of stages."""
