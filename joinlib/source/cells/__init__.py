"""Messages become columns by way of cells: what the readers of Avro and of Protobuf have in common.

slots      columns, and the slots and levels that they are written to    pure
kernel     copies bytes                                                  compiled
arrow      what a kernel wrote -> Arrow columns                          pure
"""
