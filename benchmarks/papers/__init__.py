"""The papers' tables and figures, computed anew beside the published ones."""
