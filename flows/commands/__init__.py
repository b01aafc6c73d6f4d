"""The commands of `nightrelay`, one module per noun; `flows.cli` puts them together."""
