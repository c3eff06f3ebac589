"""`python -m jobs.driver` is the command `streamjoin-driver`."""

from jobs.driver.driver import main

main()
