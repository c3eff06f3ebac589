"""`python -m jobs.ask.answer why|whynot FILE CONDITION`: the commands of `streamjoin`, with the functions of the image.

The driver takes no function from a volume, so neither does what tells of its rows.
"""

import sys
from pathlib import Path

from joinlib.lean import lean, loading


def main() -> None:
    """Print the answer; end as the command line does."""
    lean()
    with loading():
        from jobs.cli import why
        from jobs.cli.commands import told
        from jobs.image import of_image
        from jobs.terminal import say
        from joinlib.registered import load
        from joinlib.spec import telling_of

    questions = {"why": why.why, "whynot": why.whynot}
    question, name, condition = sys.argv[1:]
    file = Path(name)
    with told():
        document = of_image(load(file))
        with telling_of(file):
            say(questions[question](document, condition))


if __name__ == "__main__":
    main()
