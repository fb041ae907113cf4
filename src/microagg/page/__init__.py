"""A local page that does the whole job in a browser: it renders the plan, the job and the evidence."""
