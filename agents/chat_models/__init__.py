"""The models that can answer, behind the one `ChatModel` protocol."""
