"""Draws a graph: makes a sketch of its tasks, lays it out, writes it as text, dot or SVG."""
