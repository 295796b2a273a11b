"""Files that hold rows, texts and pictures of a collection, whatever its layout."""
