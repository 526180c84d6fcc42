"""Analyses that passes of several levels ask: accesses, dependences, costs. They never change the IR."""
