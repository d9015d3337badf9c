"""Exact derivatives of scalar formulas: numbers that carry their partial derivatives, in twice the digits."""
