"""`streamjoin sql`: a prompt for queries over the inputs of a spec file, or over files.

statements   text -> statements
tables       files -> inputs, with the columns that are in them
contents     what came out, batch by batch -> what the result is now
complete     what could be typed next
catalog      inputs and views -> the job of a query
query        runs one query, and shows its result while it grows
loop         the prompt
"""
