"""What all tests share: Hypothesis tries few, small examples and does not time them on a busy machine;
in CI it tries the same ones every time.
"""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=2000)
settings.register_profile("ci", parent=settings.get_profile("quick"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "quick")
