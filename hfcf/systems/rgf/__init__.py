"""RGF (Paranjape et al. 2022, ACL): retrieve near misses, generate questions for their answers, filter."""
