"""The method: plan, bags, training, out-of-bag rule, decisions."""
