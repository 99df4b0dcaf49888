"""How far from the gold standard: benchmark graphs, impurity, complexity and cost."""
