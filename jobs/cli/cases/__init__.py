"""`streamjoin test`: the cases of a spec, run in this process.

rows     rows of YAML -> columns of their types, or the place where they do not fit
given    a spec and a case -> the job that is run: the same query over the rows of the case
play     runs a case -> the first difference from what it expects
differ   expected and found rows -> that difference
report   what became of all cases, for people and as JUnit XML
"""
