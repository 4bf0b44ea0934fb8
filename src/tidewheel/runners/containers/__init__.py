"""Runs sets of containers, by docker-compose beside the worker or on a Swarm."""
