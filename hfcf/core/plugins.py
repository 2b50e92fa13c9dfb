"""Systems and corpora of other installed packages, by entry points: `hfcf.systems` and `hfcf.corpora`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import entry_points


def known(own: Mapping[str, str], group: str) -> dict[str, str]:
    """Name → where it lives ("module:class", or "module"): this library's, then what installed packages add.

    A name of this library stays this library's.

    >>> known({"race": "hfcf.systems.race:RACE"}, "hfcf.systems")["race"]
    'hfcf.systems.race:RACE'
    """
    return {**own, **{one.name: one.value for one in sorted(entry_points(group=group)) if one.name not in own}}
