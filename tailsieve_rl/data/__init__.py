"""The paper's data sets as prompts in verl's format: `tailsieve data`."""
