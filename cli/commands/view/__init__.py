"""Commands that show stored runs and experiments: pictures, reports, a local server."""
