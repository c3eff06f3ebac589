"""Messages in Protobuf become columns: each by its writer's schema, matched by numbers with the reader's.

protoc     .proto text -> compiled files, by the official compiler      runs it
schema     compiled files -> the type of a message                      pure
types      a message's type -> the column types it has here             pure
program    writer's type + columns -> tables of fields                  pure
kernel     reads all messages by these tables                           compiled, reads nothing outside of them
columns    what the kernel wrote -> Arrow columns                       pure
"""
