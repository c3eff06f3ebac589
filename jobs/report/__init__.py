"""What people who help need to know of a job, in one archive: nothing of its rows, and no secret.

redact    what is left out of texts: secrets that the spec names, logins, and whatever an error may quote of rows
archive   texts by name become a zip file
"""
