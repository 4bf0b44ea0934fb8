"""Pictures of a graph: a sketch of its tasks, its layout, and the text, dot or SVG of it."""
