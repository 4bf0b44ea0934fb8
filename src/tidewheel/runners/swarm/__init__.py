"""Tasks whose job is a set of services on a Docker Swarm."""
