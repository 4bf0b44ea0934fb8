"""Front ends: each turns what a person wrote into one `WorkflowDef`."""
