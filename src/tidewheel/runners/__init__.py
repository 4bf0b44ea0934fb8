"""How an attempt becomes processes or function calls."""
