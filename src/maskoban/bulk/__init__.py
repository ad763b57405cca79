"""Datasets by the million: sample, solve, repair and rate boards, and write Parquet, on one machine or on Ray."""
