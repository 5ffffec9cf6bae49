"""One HTML page of all reports at hand, complete in itself: no script, no network, text for every picture."""
