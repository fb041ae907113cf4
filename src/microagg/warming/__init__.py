"""Compile in advance the kernels that a job will need."""
