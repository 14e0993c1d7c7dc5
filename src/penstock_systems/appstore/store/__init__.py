"""The store's endpoints, each in its true shape, and what they say in one shape of ours."""
