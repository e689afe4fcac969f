"""What a question needs: names, relations, and the lookups that follow from them."""
