"""Compare resvm with its peers on identical work by timing whole processes."""
