"""The command line: modules of commands, loaded when one of them is called."""
