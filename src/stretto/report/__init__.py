"""What a run or a plan looks like to a person. In: events or a plan. Out: text."""
