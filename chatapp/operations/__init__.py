"""What all packages use (clock, errors, database threads, HTTP, jobs), and the process: health, metrics, serving."""
