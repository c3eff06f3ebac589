"""The operator: it makes the objects that each StreamJoin needs, and reports how the job is doing.

    watch ──► queue ──► observe ──► decide ──► apply ──► status
    (kopf)              (cache)     (pure)     (server-side)

    handlers      kopf's events; credentials, leader and serve surround them
    controller    loops and workers; workqueue holds the jobs to reconcile
    reconcile     one job: reads cache, api, driver_client and prometheus, then writes
    decide        observed state in, desired state out:
                      the spec        admission, classify, ownership, volumes, allow
                      the pods        diagnosis, pod_events, node_loss, restarts
                      the objects     build makes them, drift compares them
    status        conditions, events and scaling, for users (persist, load_metrics)
    metrics       for Prometheus; liveness is for the kubelet

Laws
    The same StreamJoin gives the same objects, byte for byte; an object that is as desired is not written.
    Handlers only say which job to reconcile: `decide` alone knows what to do, and touches nothing.
    No finalizers, and no annotations on users' objects: owner references delete what a StreamJoin owned, even
    while no operator runs.
"""
