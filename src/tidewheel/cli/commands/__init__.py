"""One module per command; each has the name of its command and a click command ``command``."""
