"""The algorithms, a folder a family and a file a paper's name; see microagg.plan.registry."""
