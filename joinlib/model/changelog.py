"""The words of a changelog: the columns that it adds to the result, and what they say. They are Spark's."""

CHANGE_TYPE = "_change_type"  # what happened to the row
BATCH = "_batch"  # the number of the batch in which it did
INSERT, DELETE = "insert", "delete"
PREIMAGE, POSTIMAGE = "update_preimage", "update_postimage"  # the row of a key before and after an update
