"""gateway: one server that holds the keys of paid services, and spends no more than its callers' budgets allow."""
