"""What the update optimises: Dr.GRPO advantages, the overlength penalty and the mathematical reward, all verl's own."""
