"""Window functions over changing rows: what is kept of partitions, what is computed, what changes."""
