"""Realistic logs from a seed, without data from outside: see :func:`generate`."""

from coprlake.testing.generator.figures import Figures, measure
from coprlake.testing.generator.generation import generate
from coprlake.testing.generator.logset import LogSet, batches_by_source

__all__ = ["Figures", "LogSet", "batches_by_source", "generate", "measure"]
