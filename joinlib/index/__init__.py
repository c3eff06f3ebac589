"""Which stored rows may match these hashes?

Law: an index returns exactly the rows that a scan would keep. An index contains hashes and row numbers, never
columns: equal hashes do not imply equal keys, so the caller compares keys.
"""
