"""What every package stands on, and the process: clock, errors, database threads, HTTP, jobs, health, serving."""
