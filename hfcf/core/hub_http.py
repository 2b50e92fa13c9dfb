"""The HTTP library that huggingface_hub uses and whose exceptions it raises; since its second version it is another library."""

try:
    from huggingface_hub.utils import httpx
except ImportError:
    import httpx  # type: ignore[no-redef]

__all__ = ["httpx"]
