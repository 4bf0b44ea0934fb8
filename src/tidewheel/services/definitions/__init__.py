"""What a run is made of: definitions of every kind, kept by their content."""
