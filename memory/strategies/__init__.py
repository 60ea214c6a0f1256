"""One module per strategy: how a context is cut, and what replaces the removed messages. `registry` lists them."""
