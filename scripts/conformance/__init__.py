"""make conformance: one suite (tests/conformance) on every driver, each in a process and a session of its own."""
