drop index sessions_passing;
