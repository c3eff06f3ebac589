"""What does a StreamJoin look like while it runs?

Four dashboards for Grafana; `python dashboards/build` writes their JSON.

A dashboard is a list of rows of panels (`overview`, `skew`, `scaling`, `joins`); how a panel looks is said
once, in `house`; what it asks is PromQL made by `queries`, which refuses names that joinlib.metric's table
does not have.
"""
