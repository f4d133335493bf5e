"""Train a single SVM: the problem, its kernel, and the solvers."""
