"""Rewrites a query of any form into small ones. Law of each: the same rows, as a bag."""
