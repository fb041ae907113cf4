"""What every stage uses: types, formatting, progress, free memory."""
