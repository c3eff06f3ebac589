"""The command `streamjoin-driver`: the process that runs a StreamJoin in a Kubernetes cluster."""
