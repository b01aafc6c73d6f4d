"""What runs the work: trainer processes, metering, work pools, the local stack. Knows neither storage nor planning."""
