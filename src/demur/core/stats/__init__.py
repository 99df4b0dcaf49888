"""Sweeps, measures, resampling, intervals and tests."""
