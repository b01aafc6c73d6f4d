"""What happens: the Prefect flows, the run journal, the ledger, the reports and the command line."""
