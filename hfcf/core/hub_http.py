"""The HTTP library that huggingface_hub sends requests with, whose exceptions it raises: another one since its second version."""

try:
    from huggingface_hub.utils import httpx
except ImportError:
    import httpx  # type: ignore[no-redef]

__all__ = ["httpx"]
