"""One SVM: the problem, its kernel, and the solvers behind it."""
