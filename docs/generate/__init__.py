"""The pages of docs/reference that are made of the code: each module has one, as `page() -> str`.

`docs/build` writes them.
"""
