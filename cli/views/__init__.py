"""Progress, notes and reports that only the command line prints."""
