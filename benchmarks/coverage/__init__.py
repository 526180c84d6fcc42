"""How much of PyTorch's operator database Stepwell computes, and whether each result is eager's.

Runs on samples of `torch.testing._internal`; a tool for developers, which nothing else imports.
"""
