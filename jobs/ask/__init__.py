"""Questions about a job that are asked where its driver runs, beside it and by reading alone.

    kubectl's plugin ── exec ──► guard ── starts, and ends if it must ──► answer ── prints ──► whoever asks

guard    watches over the process that answers
answer   `why` and `whynot`, as on the command line
"""
