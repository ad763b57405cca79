"""Datasets by the million: draw, judge, mend, rate, identify, and write Parquet, here or on a Ray cluster."""
