"""Learn classifiers and rankings from positive and unlabeled data with robust ensembles of SVMs."""

__version__ = "0.2.0"
