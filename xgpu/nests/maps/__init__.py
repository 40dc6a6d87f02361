"""Maps from threads to the iterations of par loops, how good they are, and the search for the best one."""
