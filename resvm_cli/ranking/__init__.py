"""From out-of-bag scores to a list: order, precision, tested rows, batch, reasons."""
