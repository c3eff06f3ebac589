"""The two ends of event time, in µs. A watermark at `ALWAYS` means that the inputs are closed."""

NEVER = -(2**63) + 1  # before every event time
ALWAYS = 2**63 - 1  # after every event time
