"""The tests; a package, so that no other one of this name can stand in its place."""
