"""What services need from the outside world, as Protocols; they know nothing else of it."""
