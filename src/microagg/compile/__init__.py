"""How kernels are compiled, kept on disk and run in threads."""
