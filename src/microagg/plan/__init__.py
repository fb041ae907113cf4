"""A plan: all settings of a release, checked and written down."""
