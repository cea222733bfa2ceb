"""The decision core: pure Python and NumPy. No torch, Ray, verl, vllm, clock or randomness of its own."""
