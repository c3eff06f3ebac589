"""Which units does a row go to?

Law: two rows that match meet in exactly one unit.
"""
