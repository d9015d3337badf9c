"""Loops: a formula in, a compiled loop out."""
