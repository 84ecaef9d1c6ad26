"""Here models are run and their maps handed over; torch is imported below this line and nowhere else."""

import os

# Read by OpenMP when torch loads it. Its threads otherwise spin between two operations on the cores that the writing
# thread needs: an ingest of 128-token texts took a quarter longer. The model alone is as fast either way.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
