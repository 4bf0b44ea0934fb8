"""Reads definitions: each front end turns what a person wrote into one `WorkflowDef`."""
