"""Raw input to records: whatever logs are written as, they leave here as Arrow batches."""
