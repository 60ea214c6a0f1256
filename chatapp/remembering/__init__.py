"""What outlives a context: learned, consolidated, recalled, changed, forgotten."""
