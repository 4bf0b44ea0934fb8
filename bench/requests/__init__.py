"""What a request costs: the server beside a bare Starlette route, in the same run."""
