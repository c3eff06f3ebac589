"""A package, so that what its tests share (an operator) is gone before the tests of other folders begin."""
