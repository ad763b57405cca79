"""One file a measure: plain functions on arrays of boards that return small values."""
