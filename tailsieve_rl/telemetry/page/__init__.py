"""The report page: one HTML file that shows runs, with all that it needs inside."""
