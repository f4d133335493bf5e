"""What is measured with resvm: the experiments of the paper, speed and quality."""
