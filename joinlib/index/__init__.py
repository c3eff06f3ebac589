"""Which stored rows may match these hashes? Law: an index returns exactly what a scan would keep.

An index knows hashes and row numbers, never columns: equal hash is not equal key, the caller compares keys.
"""
