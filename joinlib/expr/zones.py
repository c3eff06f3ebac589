"""Time zones: how far they are ahead of UTC. Law: Java's names; in the hour that comes twice it is the first one."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from joinlib.expr.calendar import CYCLE

_FIRST, _LAST = -718_000, 2_900_000  # within the years 4 to 9909
SHORT = {
    "ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
    "AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare",
    "CNT": "America/St_Johns", "CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris", "IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia", "NET": "Asia/Yerevan", "NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico", "PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}  # fmt: skip


def near(days: int) -> int:
    """Move days to years that Python's clocks know, by whole cycles of 400 years, which have the same weekdays."""
    if days > _LAST:
        return days - -(-(days - _LAST) // CYCLE) * CYCLE
    return days + -(-(_FIRST - days) // CYCLE) * CYCLE if days < _FIRST else days


@lru_cache(maxsize=1000)
def zone_of(name: str) -> ZoneInfo:
    """Return the zone of that name; short names are Java's.

    Raises:
        ZoneInfoNotFoundError: if there is none.
    """
    if name.startswith(("/", ".")) or name.endswith("/") or name in ("localtime", "posixrules", "Factory"):
        raise ZoneInfoNotFoundError(name)
    return ZoneInfo(SHORT.get(name, name))
