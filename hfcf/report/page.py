"""What self-contained pages share: their style and scripts, data as JSON in them, and the hash by which a policy names a script."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources
from typing import Any


def embed_json(value: Any) -> str:
    """Write JSON that can't end the element that holds it."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def read_template(name: str, package: str = "hfcf.report") -> str:
    """Read a file of a package's folder `templates` as it is."""
    return (resources.files(package) / "templates" / name).read_text(encoding="utf-8")


def hash_script(script: str) -> str:
    """Return what a Content-Security-Policy names a script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"
