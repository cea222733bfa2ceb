"""What the update optimises: Dr.GRPO, the overlength penalty and the mathematical reward, all verl's own."""
