"""The page of a run: what does it do now? Served by a driver, and by `streamjoin run --page PORT` on a laptop.

page.html   one file without anything from elsewhere; it asks for /v1/page every two seconds
answer      what /v1/page says, made of the same moment as status and metrics; pure
serve       the two resources, and what keeps others out
notes       the last phases, changes of executors, warnings and errors
"""
