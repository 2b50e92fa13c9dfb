"""CrossAug (Lee et al. 2021, CIKM): contrastive pairs for fact verification, from SUPPORTS rows.

For (c, e, SUPPORTS) a generator writes a negative claim c′. Where c and c′ differ in a few words that the evidence has too, the
same words are replaced there, which gives e′. Paired crosswise: (c′, e, REFUTES), (c, e′, REFUTES) and (c′, e′, SUPPORTS).
"""

from hfcf.systems.crossaug.modify_evidence import ModifyEvidence, changed_span, occurrences
from hfcf.systems.crossaug.negative_claim import GenerateNegativeClaim
from hfcf.systems.crossaug.system import OFFLINE, CrossAug, CrossPairs
from hfcf.text.words import spaced_like

__all__ = [
    "OFFLINE", "CrossAug", "CrossPairs", "GenerateNegativeClaim", "ModifyEvidence", "changed_span", "occurrences", "spaced_like",
]  # fmt: skip
