"""Streams into a table: from a folder or Kafka, each record exactly once."""
