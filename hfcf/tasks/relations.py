"""Old names, until the systems are moved to `hfcf.tasks.relation`."""

from hfcf.tasks.relation import *  # noqa: F403
from hfcf.tasks.relation import CANDIDATES, COUNTERFACTUALS, OTHER  # noqa: F401
