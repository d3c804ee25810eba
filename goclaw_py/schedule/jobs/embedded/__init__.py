"""Jobs for other programs: ``JobScheduler`` calls their functions when jobs are due."""
