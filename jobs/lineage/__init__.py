"""What a job reads and writes, column by column, for catalogues that understand OpenLineage.

datasets   where inputs and outputs are, by OpenLineage's rules for names
event      the job and its datasets as JSON; pure
told       a run tells when it starts, runs and ends
send       events go to an endpoint in a thread of their own
"""
