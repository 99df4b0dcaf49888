"""Simulators, experiments of the papers, the demo: for whoever studies, not for whoever evaluates."""
