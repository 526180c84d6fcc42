"""From PyTorch to the graph dialect: AOTAutograd, FX import, the tables of ATen ops. No lowering, no execution."""
