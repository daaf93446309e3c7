"""What a lead does and sees: people, progress, pace, and the units on which people disagree."""
