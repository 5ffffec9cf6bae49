"""What data sets score answers by: one metric a file, numbers from 0 to 1, equal to the data sets' own code."""
