"""The pages of jobs: the list, a job, and its form."""
