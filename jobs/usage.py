"""How a command says what it takes: `FILE...`, `[SELECT]`, and flags without a type."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperOption

Condition = Annotated[
    str,
    typer.Argument(
        metavar="CONDITION",
        help="SQL over columns of an input, or of the output where they are columns of an input, such as 'order_id = 4711'.",
        show_default=False,
    ),
]
_FROM_PYDANTIC = "Value error, "


class Usage(TyperCommand):
    """A command whose usage and mistakes are in the words of its reference."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; `--help` needs no type, nor does any other flag."""
        found = super().get_params(ctx)
        for parameter in found:
            if isinstance(parameter, TyperOption) and parameter.is_flag:
                parameter.metavar = ""
        return found

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the words of the usage; what is required stands without braces."""
        return [piece.replace("{", "").replace("}", "") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        with _in_words():
            return super().parse_args(ctx, args)


@contextmanager
def _in_words() -> Iterator[None]:
    """Tell of a wrong value without the word that a library puts before it."""
    try:
        yield
    except typer.BadParameter as error:
        error.message = error.message.removeprefix(_FROM_PYDANTIC)
        raise
