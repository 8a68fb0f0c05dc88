"""Generates realistic logs from a seed, without external data; see :func:`generate`."""

from coprlake.generator.generation import generate
from coprlake.generator.log_figures import Figures, measure
from coprlake.generator.logset import LogSet, batches_by_source

__all__ = ["Figures", "LogSet", "batches_by_source", "generate", "measure"]
