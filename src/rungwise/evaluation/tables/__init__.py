"""Results as tables, alone and beside the rows that papers print."""
