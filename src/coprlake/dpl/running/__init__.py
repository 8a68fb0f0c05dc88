"""The kernels that run a compiled pattern over texts."""
