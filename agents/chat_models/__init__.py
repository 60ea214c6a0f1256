"""The chat models, all behind the `ChatModel` protocol."""
