"""What must hold in every history of a store, written apart from the code it judges."""
