"""Chat models in this process: they answer here what `hfcf.engines.remote` asks an endpoint."""
