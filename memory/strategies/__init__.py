"""One module per strategy: how a context is cut, and what stands for what left it. `registry` lists them."""
