"""`python -m joinop` runs the operator until it is told to stop."""

import logging
import os
import sys
from importlib.machinery import ModuleSpec
from typing import Any


class _Without:
    """Refuses an import. pyarrow takes pandas when it can: 40 MB that a planner has no use for."""

    def __init__(self, *names: str) -> None:
        self.names = names

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        if name in self.names:
            raise ModuleNotFoundError(name=name)
        return None


def main() -> None:
    """The operator, with settings from the environment."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    sys.meta_path.insert(0, _Without("pandas"))
    import kopf

    from joinop import handlers
    from joinop.config import Config

    config = Config.of(os.environ)
    settings = handlers.settings()
    settings.scanning.disabled = True  # the kinds are known, and listing CRDs needs rights over the whole cluster
    kopf.run(
        registry=handlers.registry(config),
        settings=settings,
        standalone=True,
        clusterwide=not config.namespaces,
        namespaces=config.namespaces,
    )


if __name__ == "__main__":
    main()
