"""Settings, addresses, database logins, and what every page shares."""

import atexit
import gc

# What the imports make stays to the end. To look through it for garbage, again and again at the start and once more at the
# end, is a third of what a process costs that lives for a second, and of a worker's start.
gc.set_threshold(10_000)
atexit.register(gc.freeze)
