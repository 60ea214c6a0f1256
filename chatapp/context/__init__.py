"""What one model call is given: policies, loading, assembly, tools, the inspector."""
