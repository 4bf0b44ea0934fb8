"""REST for people and machines: one table of routes, each with the policy that guards it."""
