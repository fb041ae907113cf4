"""What groups must satisfy beside their number of records, and the repair of groups that do not."""
