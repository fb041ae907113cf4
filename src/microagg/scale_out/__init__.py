"""Tables larger than memory, and the counting and linking that go with them."""
