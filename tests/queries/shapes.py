from tests.queries.draw import Shape

SHAPES: dict[str, Shape] = {}
