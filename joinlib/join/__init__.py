"""Which rows match?

Law: the result is the same multiset as that of a nested loop, however the streams were cut into batches.
"""
