"""Holds each operation of the store as one transaction, written once for every database."""
