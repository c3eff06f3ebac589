"""Which rows match? Law: the same multiset as a nested loop, however the streams were cut into batches."""
