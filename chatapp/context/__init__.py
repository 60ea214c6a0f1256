"""The input of one model call: policies, loading, assembly, tools, the inspector."""
