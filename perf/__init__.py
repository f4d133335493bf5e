"""resvm beside its peers on identical work, whole process against whole process."""
