"""Human evaluation: rating sheets for any protocol and system, methods hidden, and what the filled sheets say."""
