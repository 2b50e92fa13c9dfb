"""Chat models in this process: what `hfcf.engines.remote` asks an endpoint, computed here."""
