"""Confidences mapped to the share of answers that are right, in a log and in a report."""
