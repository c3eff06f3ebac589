"""On which path does a new row find its partners, and at which price? Pure: planner and units ask the same functions.

Law: a path changes what a batch costs, never what it finds.
"""
