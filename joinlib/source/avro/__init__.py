"""Messages in Avro become columns: each by its writer's schema, resolved to the columns that are declared.

schema     JSON -> types                                        pure
types      an Avro type -> the column type it has here          pure
program    writer's type + columns -> a program of few words    pure
kernel     runs the program over all messages                   compiled, reads nothing outside of them
columns    what the kernel wrote -> Arrow columns               pure
"""
