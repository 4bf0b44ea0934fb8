"""The pages: what commands print, for people and for programs."""
