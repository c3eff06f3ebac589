"""What people who help need to know of a job, in one archive: nothing of its rows, and no secret.

redact      what is left out of texts: secrets, and whatever an error may quote of rows
known       secrets that the spec names, in every form in which they may be written
announced   secrets that nobody knows, by what stands around them
archive     texts by name become a zip file
"""
