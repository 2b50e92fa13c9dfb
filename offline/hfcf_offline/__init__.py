"""The adapters that hfcf reads as `hfcf:NAME`, in the folder `adapters`; hfcf finds it and imports nothing."""
