"""How sure a number is, class by class and part by part."""
