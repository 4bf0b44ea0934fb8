"""What travels over HTTP, as types: checked on the way in, described by OpenAPI."""
