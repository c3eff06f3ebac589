"""What a batch spent its time on, for whoever collects traces of OpenTelemetry.

span       a batch and its phases as a tree of spans; pure
settings   the variables of OpenTelemetry's own programs that are understood
encode     traces as a request of OTLP; the only module that loads OpenTelemetry, where an endpoint is named
told       a run tells of its batches, in a thread of its own
"""
