"""`python -m joinop` runs the operator until it receives SIGTERM."""

import logging
import os
import sys

from joinlib.lean import lean

# Kubernetes takes JSON of ten thousand levels, and one such object must not end the watch of all.
_DEEPEST = 15_000


def main() -> None:
    """Run the operator with settings from the environment."""
    sys.setrecursionlimit(_DEEPEST)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    lean()
    import kopf

    from joinop import handlers
    from joinop.config import Config

    config = Config.of(os.environ)
    kopf.run(
        registry=handlers.registry(config),
        settings=handlers.settings(),
        standalone=True,
        clusterwide=not config.namespaces,
        namespaces=config.namespaces,
    )


if __name__ == "__main__":
    main()
