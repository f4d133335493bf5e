"""Compare resvm with its peers on identical work, timing whole processes."""
