"""CheckWhy (Si et al. 2024, ACL): build rows of causal fact verification from cause–effect pairs."""
