"""Write the profiles: `python -m tailsieve_rl.simulation.profiles`."""

from tailsieve_rl.simulation.profiles import write_profiles

for path in write_profiles():
    print(path)
