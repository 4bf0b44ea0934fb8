"""Offers the command line; a module of commands is loaded when one of them is called."""
