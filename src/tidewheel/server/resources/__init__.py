"""What can be asked of the server, one module per kind of thing."""
