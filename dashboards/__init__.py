"""What does a StreamJoin look like while it runs?

Six dashboards for Grafana; `python dashboards/build` writes their JSON.

A dashboard is a list of rows of panels (`overview`, `skew`, `scaling` and `joins` of one job, `fleet` of all jobs,
`operator` of the operator); how a panel looks is said once, in `house`; what it asks is PromQL made by `queries`,
which refuses names that joinlib.metric's table does not have.
"""
