"""The story that Backstop is about, told twice: by a stock agent, and by this one."""
