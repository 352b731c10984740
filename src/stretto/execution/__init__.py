"""The driver: journals events, carries out commands, and starts, resumes and ends runs."""
